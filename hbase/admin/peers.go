package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// PeerConfig says what is replicated to another cluster, and how. Make it with
// [NewPeer] or [NewPeerEndpoint]: the zero value replicates nothing.
type PeerConfig struct {
	// ClusterKey is the other cluster: "quorum:port:/znode" (HBase 3 also takes
	// a connection URI). It and Endpoint cannot be changed later.
	ClusterKey string
	// Endpoint is the Java class that ships the edits, if it is not HBase's
	// own.
	Endpoint string
	// Configuration overrides hbase.* settings for the peer; Data is for the
	// endpoint class.
	Configuration map[string]string
	Data          map[string][]byte
	// ReplicateAll ships all tables' families with a REPLICATION_SCOPE but
	// those excluded. Without it only Namespaces and TableCFs are shipped.
	// HBase refuses lists of the kind that does not go with it.
	ReplicateAll      bool
	Namespaces        []string
	TableCFs          TableCFs
	ExcludeNamespaces []string
	ExcludeTableCFs   TableCFs
	// Bandwidth bounds each server's shipping in bytes a second; 0: unbounded.
	Bandwidth int64
	// Serial ships the edits of a region in their order, even when it moves
	// (HBase 2.1+).
	Serial bool
	// RemoteWALDir makes it a synchronous peer (HBase 3).
	RemoteWALDir string
}

// TableCFs lists families by table ("ns:t" or "t"); no families means all of
// the table.
type TableCFs map[string][]string

// Peer is a replication peer.
type Peer struct {
	ID      string
	Enabled bool
	Config  PeerConfig
	// SyncState is NONE, ACTIVE, DOWNGRADE_ACTIVE or STANDBY; NONE before
	// HBase 3.
	SyncState SyncState
}

// SyncState is the state of a synchronous peer (HBase 3).
type SyncState int32

// HBase's states.
const (
	SyncNone            = SyncState(pb.SyncReplicationState_NONE)
	SyncActive          = SyncState(pb.SyncReplicationState_ACTIVE)
	SyncDowngradeActive = SyncState(pb.SyncReplicationState_DOWNGRADE_ACTIVE)
	SyncStandby         = SyncState(pb.SyncReplicationState_STANDBY)
)

// String gives HBase's name.
func (s SyncState) String() string { return pb.SyncReplicationState_State(s).String() }

// NewPeer is a peer to which everything is replicated that has a scope.
func NewPeer(clusterKey string) PeerConfig {
	return PeerConfig{ClusterKey: clusterKey, ReplicateAll: true}
}

// NewPeerEndpoint is a peer served by an endpoint class of one's own. Some
// classes want a cluster key too.
func NewPeerEndpoint(class string) PeerConfig {
	return PeerConfig{Endpoint: class, ReplicateAll: true}
}

// Clone copies the lists and maps too.
func (c PeerConfig) Clone() PeerConfig {
	c.Configuration = maps.Clone(c.Configuration)
	c.Data = maps.Clone(c.Data)
	c.Namespaces = slices.Clone(c.Namespaces)
	c.ExcludeNamespaces = slices.Clone(c.ExcludeNamespaces)
	c.TableCFs = c.TableCFs.clone()
	c.ExcludeTableCFs = c.ExcludeTableCFs.clone()
	return c
}

func (t TableCFs) clone() TableCFs {
	if t == nil {
		return nil
	}
	out := make(TableCFs, len(t))
	for k, v := range t {
		out[k] = slices.Clone(v)
	}
	return out
}

// Append adds tables and families. Families join those of a table already
// there; all of a table absorbs single ones, whichever was first (Java:
// ReplicationPeerConfigUtil.mergeTableCFs).
func (t *TableCFs) Append(more TableCFs) error {
	canon, err := more.canonical("append table-cfs")
	if err != nil {
		return err
	}
	have, err := t.canonical("append table-cfs")
	if err != nil {
		return err
	}
	for table, families := range canon {
		old, ok := have[table]
		switch {
		case !ok:
			have[table] = families
		case len(old) == 0 || len(families) == 0:
			have[table] = nil
		default:
			for _, f := range families {
				if !slices.Contains(old, f) {
					old = append(old, f)
				}
			}
			have[table] = old
		}
	}
	*t = have
	return nil
}

// Remove takes tables and families away. As in HBase, single families of a
// table listed whole cannot be taken away, nor a whole table of which families
// are listed, nor a table that is not listed.
func (t *TableCFs) Remove(less TableCFs) error {
	const op = "remove table-cfs"
	canon, err := less.canonical(op)
	if err != nil {
		return err
	}
	have, err := t.canonical(op)
	if err != nil {
		return err
	}
	for table, families := range canon {
		object := "table " + strconv.Quote(table)
		old, ok := have[table]
		switch {
		case !ok:
			return invalid(op, object, "is not in the list")
		case len(old) == 0 && len(families) > 0:
			return invalid(op, object, "is in the list with all its families; none of them can be taken away alone")
		case len(old) > 0 && len(families) == 0:
			return invalid(op, object, "is in the list with some of its families; name them")
		}
		old = slices.DeleteFunc(old, func(f string) bool { return slices.Contains(families, f) })
		if len(old) == 0 {
			delete(have, table)
		} else {
			have[table] = old
		}
	}
	*t = have
	return nil
}

// canonical checks the names and gives a copy with one spelling for each.
func (t TableCFs) canonical(op string) (TableCFs, error) {
	out := make(TableCFs, len(t))
	for name, families := range t {
		table, err := parseTable(op, name)
		if err != nil {
			return nil, err
		}
		for _, f := range families {
			if f == "" || strings.ContainsAny(f, ":,;") {
				return nil, invalid(op, ofTable(table), "has the family "+strconv.Quote(f))
			}
		}
		out[table.String()] = slices.Clone(families)
	}
	return out, nil
}

// String is HBase's text form, "default.t:f,g;ns.u", sorted by table.
func (t TableCFs) String() string {
	var parts []string
	for name := range t {
		ns, qualifier, ok := strings.Cut(name, ":")
		if !ok {
			ns, qualifier = "default", name
		}
		part := ns + "." + qualifier
		if len(t[name]) > 0 {
			part += ":" + strings.Join(t[name], ",")
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return strings.Join(parts, ";")
}

func (t TableCFs) toProto(op string) ([]*pb.TableCF, error) {
	canon, err := t.canonical(op)
	if err != nil {
		return nil, err
	}
	var out []*pb.TableCF
	for _, name := range slices.Sorted(maps.Keys(canon)) {
		table, err := parseTable(op, name)
		if err != nil {
			return nil, err
		}
		cf := &pb.TableCF{TableName: table.ToProto()}
		for _, f := range canon[name] {
			cf.Families = append(cf.Families, []byte(f))
		}
		out = append(out, cf)
	}
	return out, nil
}

func tableCFs(ps []*pb.TableCF) TableCFs {
	if len(ps) == 0 {
		return nil
	}
	out := make(TableCFs, len(ps))
	for _, p := range ps {
		var families []string
		for _, f := range p.Families {
			families = append(families, string(f))
		}
		out[tableNames([]*pb.TableName{p.GetTableName()})[0].String()] = families
	}
	return out
}

func texts(bs [][]byte) []string {
	var out []string
	for _, b := range bs {
		out = append(out, string(b))
	}
	slices.Sort(out)
	return out
}

func checkPeer(op, id string) error {
	object := "peer " + strconv.Quote(id)
	switch {
	case id == "":
		return invalid(op, "peer", "has no name")
	case strings.ContainsAny(id, "-/"):
		return invalid(op, object, "holds - or /, with which HBase joins names of queues")
	}
	return nil
}

func (c PeerConfig) toProto(op string) (*pb.ReplicationPeer, error) {
	if c.ClusterKey == "" && c.Endpoint == "" {
		return nil, invalid(op, "peer", "has neither a cluster key nor an endpoint class")
	}
	if c.Bandwidth < 0 {
		return nil, invalid(op, "bandwidth", fmt.Sprintf("%d is negative", c.Bandwidth))
	}
	p := &pb.ReplicationPeer{
		Configuration: configurationToProto(c.Configuration),
		Bandwidth:     new(c.Bandwidth), ReplicateAll: new(c.ReplicateAll), Serial: new(c.Serial),
	}
	if c.ClusterKey != "" {
		p.Clusterkey = new(c.ClusterKey)
	}
	if c.Endpoint != "" {
		p.ReplicationEndpointImpl = new(c.Endpoint)
	}
	if c.RemoteWALDir != "" {
		p.RemoteWALDir = new(c.RemoteWALDir)
	}
	for _, k := range slices.Sorted(maps.Keys(c.Data)) {
		p.Data = append(p.Data, &pb.BytesBytesPair{First: []byte(k), Second: c.Data[k]})
	}
	for _, list := range []struct {
		from []string
		to   *[][]byte
	}{{c.Namespaces, &p.Namespaces}, {c.ExcludeNamespaces, &p.ExcludeNamespaces}} {
		for _, ns := range list.from {
			if err := checkNamespace(op, ns); err != nil {
				return nil, err
			}
			*list.to = append(*list.to, []byte(ns))
		}
	}
	var err error
	if p.TableCfs, err = c.TableCFs.toProto(op); err == nil {
		p.ExcludeTableCfs, err = c.ExcludeTableCFs.toProto(op)
	}
	return p, err
}

func peerConfig(p *pb.ReplicationPeer) PeerConfig {
	c := PeerConfig{
		ClusterKey: p.GetClusterkey(), Endpoint: p.GetReplicationEndpointImpl(),
		Configuration: configurationFromProto(p.GetConfiguration()),
		Namespaces:    texts(p.GetNamespaces()), ExcludeNamespaces: texts(p.GetExcludeNamespaces()),
		TableCFs: tableCFs(p.GetTableCfs()), ExcludeTableCFs: tableCFs(p.GetExcludeTableCfs()),
		Bandwidth: p.GetBandwidth(), Serial: p.GetSerial(), RemoteWALDir: p.GetRemoteWALDir(),
		// What is not said is true, as in HBase's builder.
		ReplicateAll: p == nil || p.ReplicateAll == nil || *p.ReplicateAll,
	}
	for _, d := range p.GetData() {
		if c.Data == nil {
			c.Data = map[string][]byte{}
		}
		c.Data[string(d.GetFirst())] = bytes.Clone(d.GetSecond())
	}
	return c
}

func ofPeer(id string) string { return "peer " + strconv.Quote(id) }

// peerError gives exceptions about peers their sentinels: some have a class of
// their own, most only a text.
func peerError(op, id string, err error) error {
	var remote *wire.RemoteError
	if errors.As(err, &remote) {
		switch {
		case unknownService(err):
			return errNotSupported(op, ofPeer(id), "this version has no such call", err)
		case strings.HasSuffix(remote.Class, ".ReplicationPeerNotFoundException"),
			strings.Contains(remote.Message, "eplication peer") && strings.Contains(remote.Message, "does not exist"):
			err = fmt.Errorf("%w: %w", fault.ErrPeerNotFound, err)
		case strings.Contains(remote.Message, "eplication peer") && strings.Contains(remote.Message, "already exists"):
			err = fmt.Errorf("%w: %w", fault.ErrPeerExists, err)
		}
	}
	return fault.Wrap(op, ofPeer(id), err)
}

// changePeer submits a change of a peer and waits for it: a procedure since
// HBase 2.1, done with the answer before. Such changes carry no nonce, so one
// that may have been done is not repeated.
func (a *Admin) changePeer(ctx context.Context, op, id, method string, param wire.Marshaler, result wire.Unmarshaler) error {
	if err := checkPeer(op, id); err != nil {
		return err
	}
	ctx, cancel := bound(ctx, a.cfg.ProcedureTimeout)
	defer cancel()
	err := a.slowMaster(ctx, op, method, param, result, session.Unsafe)
	if err == nil {
		if r, ok := result.(submitted); ok && r.GetProcId() != 0 {
			_, err = a.wait(ctx, op, ofPeer(id), r.GetProcId())
		}
	}
	return peerError(op, id, err)
}

// AddPeer adds a replication peer, enabled or not (HBase 2.0+; the id has no
// '-'). The master of a 2.5+ cluster asks the other one for its id and refuses
// a peer that is this cluster itself.
func (a *Admin) AddPeer(ctx context.Context, id string, c PeerConfig, enabled bool) error {
	const op = "add peer"
	p, err := c.toProto(op)
	if err != nil {
		return err
	}
	state := pb.ReplicationState_DISABLED
	if enabled {
		state = pb.ReplicationState_ENABLED
	}
	return a.changePeer(ctx, op, id, "AddReplicationPeer",
		&pb.AddReplicationPeerRequest{PeerId: &id, PeerConfig: p, PeerState: &pb.ReplicationState{State: state.Enum()}}, &pb.AddReplicationPeerResponse{})
}

// RemovePeer removes a peer and what waits to be shipped to it.
func (a *Admin) RemovePeer(ctx context.Context, id string) error {
	return a.changePeer(ctx, "remove peer", id, "RemoveReplicationPeer", &pb.RemoveReplicationPeerRequest{PeerId: &id}, &pb.RemoveReplicationPeerResponse{})
}

// EnablePeer starts shipping to a peer; what was held back follows.
func (a *Admin) EnablePeer(ctx context.Context, id string) error {
	return a.changePeer(ctx, "enable peer", id, "EnableReplicationPeer", &pb.EnableReplicationPeerRequest{PeerId: &id}, &pb.EnableReplicationPeerResponse{})
}

// DisablePeer stops shipping to a peer; edits are kept for it.
func (a *Admin) DisablePeer(ctx context.Context, id string) error {
	return a.changePeer(ctx, "disable peer", id, "DisableReplicationPeer", &pb.DisableReplicationPeerRequest{PeerId: &id}, &pb.DisableReplicationPeerResponse{})
}

// Peer gives a peer's configuration; ErrPeerNotFound if there is none.
func (a *Admin) Peer(ctx context.Context, id string) (PeerConfig, error) {
	const op = "get peer"
	if err := checkPeer(op, id); err != nil {
		return PeerConfig{}, err
	}
	var resp pb.GetReplicationPeerConfigResponse
	if err := a.master(ctx, op, "GetReplicationPeerConfig", &pb.GetReplicationPeerConfigRequest{PeerId: &id}, &resp, session.Safe); err != nil {
		return PeerConfig{}, peerError(op, id, err)
	}
	return peerConfig(resp.GetPeerConfig()), nil
}

// SetPeer replaces a peer's configuration. Cluster key and endpoint class must
// be the ones it has.
func (a *Admin) SetPeer(ctx context.Context, id string, c PeerConfig) error {
	const op = "update peer"
	p, err := c.toProto(op)
	if err != nil {
		return err
	}
	return a.changePeer(ctx, op, id, "UpdateReplicationPeerConfig", &pb.UpdateReplicationPeerConfigRequest{PeerId: &id, PeerConfig: p}, &pb.UpdateReplicationPeerConfigResponse{})
}

// UpdatePeer reads a peer's configuration, lets change alter it, and writes it
// back. HBase has no way to notice another's change in between.
func (a *Admin) UpdatePeer(ctx context.Context, id string, change func(*PeerConfig) error) error {
	c, err := a.Peer(ctx, id)
	if err != nil {
		return err
	}
	if err := change(&c); err != nil {
		return err
	}
	return a.SetPeer(ctx, id, c)
}

// ListPeers lists the peers whose ids match a regular expression as a whole
// ("" for all), sorted by id.
func (a *Admin) ListPeers(ctx context.Context, pattern string) ([]Peer, error) {
	const op = "list peers"
	var re *regexp.Regexp
	if pattern != "" {
		var err error
		if re, err = wholePattern(op, pattern); err != nil {
			return nil, err
		}
	}
	var resp pb.ListReplicationPeersResponse
	if err := a.master(ctx, op, "ListReplicationPeers", &pb.ListReplicationPeersRequest{}, &resp, session.Safe); err != nil {
		return nil, fault.Wrap(op, "", err)
	}
	var out []Peer
	for _, d := range resp.PeerDesc {
		if re != nil && !re.MatchString(d.GetId()) {
			continue
		}
		out = append(out, Peer{
			ID: d.GetId(), Enabled: d.GetState().GetState() == pb.ReplicationState_ENABLED, Config: peerConfig(d.GetConfig()),
			SyncState: SyncState(d.GetSyncReplicationState().GetState()),
		})
	}
	slices.SortFunc(out, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// PeerEnabled says whether a peer is enabled. Before HBase 2.6, which has a
// call for it, the list of peers tells. ErrPeerNotFound if there is none.
func (a *Admin) PeerEnabled(ctx context.Context, id string) (bool, error) {
	const op = "peer enabled"
	// That call answers for a peer that is not there with an exception that
	// looks as if it were worth a retry.
	if _, err := a.Peer(ctx, id); err != nil {
		return false, err
	}
	var resp pb.GetReplicationPeerStateResponse
	err := a.master(ctx, op, "IsReplicationPeerEnabled", &pb.GetReplicationPeerStateRequest{PeerId: &id}, &resp, session.Safe)
	if err == nil || !unknownService(err) {
		return resp.GetIsEnabled(), peerError(op, id, err)
	}
	peers, err := a.ListPeers(ctx, "")
	if err != nil {
		return false, err
	}
	for _, p := range peers {
		if p.ID == id {
			return p.Enabled, nil
		}
	}
	return false, fault.Wrap(op, ofPeer(id), fault.ErrPeerNotFound)
}

// PeerModificationEnabled says whether peers may be changed (HBase 2.6+).
func (a *Admin) PeerModificationEnabled(ctx context.Context) (bool, error) {
	const op = "peer modification enabled"
	var resp pb.IsReplicationPeerModificationEnabledResponse
	err := a.master(ctx, op, "IsReplicationPeerModificationEnabled", &pb.IsReplicationPeerModificationEnabledRequest{}, &resp, session.Safe)
	return resp.GetEnabled(), switchError(op, err)
}

// SetPeerModification allows or forbids changes of peers, for the time of a
// migration of their storage, and says what it was before (HBase 2.6+). With
// drain it also waits until no change submitted earlier is running.
func (a *Admin) SetPeerModification(ctx context.Context, on, drain bool) (was bool, err error) {
	const op = "peer modification switch"
	ctx, cancel := bound(ctx, a.cfg.ProcedureTimeout)
	defer cancel()
	var resp pb.ReplicationPeerModificationSwitchResponse
	if err := a.master(ctx, op, "ReplicationPeerModificationSwitch", &pb.ReplicationPeerModificationSwitchRequest{On: &on}, &resp, session.Safe); err != nil {
		return false, switchError(op, err)
	}
	for pause := 10 * time.Millisecond; drain; pause = min(2*pause, lastPoll) {
		var running pb.GetReplicationPeerModificationProceduresResponse
		err := a.master(ctx, op, "GetReplicationPeerModificationProcedures", &pb.GetReplicationPeerModificationProceduresRequest{}, &running, session.Safe)
		if err != nil {
			return resp.GetPreviousValue(), switchError(op, err)
		}
		if len(running.Procedure) == 0 {
			break
		}
		if err := sleep(ctx, pause); err != nil {
			return resp.GetPreviousValue(), fault.Wrap(op, "", fmt.Errorf("%d changes of peers are still running: %w", len(running.Procedure), err))
		}
	}
	return resp.GetPreviousValue(), nil
}

func switchError(op string, err error) error {
	if err != nil && unknownService(err) {
		return errNotSupported(op, "", "this version has no such call", err)
	}
	return fault.Wrap(op, "", err)
}

// TransitPeerSyncState changes the state of a synchronous peer (HBase 3).
func (a *Admin) TransitPeerSyncState(ctx context.Context, id string, to SyncState) error {
	const op = "transit peer"
	if _, ok := pb.SyncReplicationState_State_name[int32(to)]; !ok || to == SyncNone {
		return invalid(op, "state", "is none of ACTIVE, DOWNGRADE_ACTIVE, STANDBY")
	}
	return a.changePeer(ctx, op, id, "TransitReplicationPeerSyncReplicationState", &pb.TransitReplicationPeerSyncReplicationStateRequest{
		PeerId: &id, SyncReplicationState: &pb.SyncReplicationState{State: pb.SyncReplicationState_State(to).Enum()},
	}, &pb.TransitReplicationPeerSyncReplicationStateResponse{})
}

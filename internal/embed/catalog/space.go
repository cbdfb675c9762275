package catalog

import (
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// usagePrefix begins the names of settings that hold what the tables under a
// space quota use: column u:p of hbase:quota, in the form of quotaPrefix's values.
const usagePrefix = "usage."

const usageColumn = "p"

func quotaRow(table meta.TableName) string { return "t." + table.String() }

func usageSetting(table meta.TableName) string {
	return usagePrefix + quotaRow(table) + "\x00" + usageColumn
}

// SpaceQuotas gives the space quotas of tables and namespaces.
func (s *State) SpaceQuotas() (tables map[meta.TableName]*pb.SpaceQuota, namespaces map[string]*pb.SpaceQuota) {
	tables, namespaces = map[meta.TableName]*pb.SpaceQuota{}, map[string]*pb.SpaceQuota{}
	for name, v := range s.Settings() {
		key, ok := strings.CutPrefix(name, quotaPrefix)
		row, column, cut := strings.Cut(key, "\x00")
		if !ok || !cut || column != quotaColumn || len(v) < 8 {
			continue
		}
		text, ok := strings.CutPrefix(v[8:], meta.ProtoMagic)
		q := new(pb.Quotas)
		if !ok || q.UnmarshalVT([]byte(text)) != nil || q.Space == nil {
			continue
		}
		if t, ok := strings.CutPrefix(row, "t."); ok {
			if name, err := meta.ParseTableName(t); err == nil {
				tables[name] = q.Space
			}
		} else if n, ok := strings.CutPrefix(row, "n."); ok {
			namespaces[n] = q.Space
		}
	}
	return tables, namespaces
}

// SpaceUsage gives what was last reckoned of a table under a space quota, its
// own or its namespace's; nil if it has none.
func (s *State) SpaceUsage(table meta.TableName) *pb.SpaceQuotaSnapshot {
	return usageOf(s.Setting(usageSetting(table)))
}

func usageOf(v string) *pb.SpaceQuotaSnapshot {
	if len(v) < 8 {
		return nil
	}
	u := new(pb.SpaceQuotaSnapshot)
	if u.UnmarshalVT([]byte(v[8:])) != nil {
		return nil
	}
	return u
}

// SpaceUsages gives what was last reckoned of all tables under a space quota, in
// no particular order.
func (s *State) SpaceUsages() iter.Seq2[meta.TableName, *pb.SpaceQuotaSnapshot] {
	return func(yield func(meta.TableName, *pb.SpaceQuotaSnapshot) bool) {
		for name, v := range s.Settings() {
			key, ok := strings.CutPrefix(name, usagePrefix+"t.")
			if !ok {
				continue
			}
			table, err := meta.ParseTableName(strings.TrimSuffix(key, "\x00"+usageColumn))
			u := usageOf(v)
			if err == nil && u != nil && !yield(table, u) {
				return
			}
		}
	}
}

// SetSpaceUsage stores what a table uses; nil removes it.
func (tx *Tx) SetSpaceUsage(table meta.TableName, u *pb.SpaceQuotaSnapshot) error {
	if u == nil {
		tx.SetSetting(usageSetting(table), "")
		return nil
	}
	b, err := u.MarshalVT()
	if err != nil {
		return err
	}
	tx.SetSetting(usageSetting(table), string(binary.BigEndian.AppendUint64(nil, uint64(tx.Now())))+string(b))
	return nil
}

// DropTableQuotas removes a table's own quotas and what it uses, as HBase does
// when it deletes a table (hbase.quota.remove.on.table.delete).
func (tx *Tx) DropTableQuotas(table meta.TableName) {
	tx.SetQuota(quotaRow(table), quotaColumn, nil)
	tx.SetSetting(usageSetting(table), "")
}

// DropNamespaceQuotas removes a namespace's own quotas.
func (tx *Tx) DropNamespaceQuotas(namespace string) { tx.SetQuota("n."+namespace, quotaColumn, nil) }

// Space is host.Quotas.
func (t *Throttles) Space(table meta.TableName) *host.Space {
	s := t.catalog.State()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != s {
		t.renew(s)
	}
	return t.space[table]
}

// Spaces is host.Quotas.
func (t *Throttles) Spaces() []*pb.GetSpaceQuotaSnapshotsResponse_TableQuotaSnapshot {
	var out []*pb.GetSpaceQuotaSnapshotsResponse_TableQuotaSnapshot
	for table, u := range t.catalog.State().SpaceUsages() {
		out = append(out, &pb.GetSpaceQuotaSnapshotsResponse_TableQuotaSnapshot{TableName: table.ToProto(), Snapshot: u})
	}
	slices.SortFunc(out, func(a, b *pb.GetSpaceQuotaSnapshotsResponse_TableQuotaSnapshot) int {
		return strings.Compare(meta.TableFromProto(a.TableName).String(), meta.TableFromProto(b.TableName).String())
	})
	return out
}

func spaceOf(u *pb.SpaceQuotaSnapshot) *host.Space {
	return &host.Space{
		Used: u.GetQuotaUsage(), Limit: u.GetQuotaLimit(),
		Violated: u.GetQuotaStatus().GetInViolation(), Policy: u.GetQuotaStatus().GetViolationPolicy(),
	}
}

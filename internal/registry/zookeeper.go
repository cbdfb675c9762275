package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// ZooKeeperConfig describes a registry in ZooKeeper.
type ZooKeeperConfig struct {
	// Servers of the ensemble, host:port each.
	Servers []string
	// ZNodeParent is HBase's znode: default /hbase.
	ZNodeParent string
	// SessionTimeout asked for: default 30 s.
	SessionTimeout time.Duration
	// Dial opens TCP connections; default net.Dialer.
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Logger *slog.Logger
}

// zkConn is what the registry needs of a ZooKeeper session.
type zkConn interface {
	// get gives errNoNode for a missing znode, and an error that is
	// errSessionOver if this session cannot answer ever again.
	get(ctx context.Context, path string) ([]byte, error)
	children(ctx context.Context, path string) ([]string, error)
	// trouble tells why there is no connection; nil if there is one.
	trouble() error
	close()
}

var (
	errNoNode      = errors.New("no such znode")
	errSessionOver = errors.New("session is over")
)

// zkRegistry reads HBase's znodes over one session, which it opens with the
// first question and replaces when it has expired: the registry owns nothing
// in ZooKeeper that could be lost with a session.
type zkRegistry struct {
	parent   string
	ensemble string
	open     func() (zkConn, error)

	mu     sync.Mutex
	conn   zkConn
	closed bool
}

func newZKRegistry(parent string, servers []string, open func() (zkConn, error)) *zkRegistry {
	if parent == "" {
		parent = DefaultZNodeParent
	}
	return &zkRegistry{parent: parent, ensemble: strings.Join(servers, ","), open: open}
}

// String gives the address.
func (r *zkRegistry) String() string { return "hbase://" + r.ensemble + r.parent }

// Close ends the session.
func (r *zkRegistry) Close() error {
	r.mu.Lock()
	conn := r.conn
	r.conn, r.closed = nil, true
	r.mu.Unlock()
	if conn != nil {
		conn.close()
	}
	return nil
}

// Trouble tells why there is no connection to the ensemble.
func (r *zkRegistry) Trouble() error {
	r.mu.Lock()
	conn := r.conn
	r.mu.Unlock()
	if conn == nil {
		return nil
	}
	return conn.trouble()
}

func (r *zkRegistry) session() (zkConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if r.conn == nil {
		conn, err := r.open()
		if err != nil {
			return nil, err
		}
		r.conn = conn
	}
	return r.conn, nil
}

// drop forgets a session that is over, unless somebody did so already.
func (r *zkRegistry) drop(conn zkConn) {
	r.mu.Lock()
	mine := r.conn == conn
	if mine {
		r.conn = nil
	}
	r.mu.Unlock()
	if mine {
		conn.close()
	}
}

// read asks once more on a fresh session if the first one turns out to be
// over; a second expiry within one question is reported.
func (r *zkRegistry) read(ctx context.Context, f func(zkConn) error) error {
	for again := false; ; again = true {
		conn, err := r.session()
		if err != nil {
			return err
		}
		err = f(conn)
		if !errors.Is(err, errSessionOver) {
			return err
		}
		r.drop(conn)
		if again || ctx.Err() != nil {
			return err
		}
	}
}

// znode reads one of HBase's znodes; errNoNode if it is missing although the
// parent is there.
func (r *zkRegistry) znode(ctx context.Context, name string) ([]byte, error) {
	path := r.parent + "/" + name
	var data []byte
	err := r.read(ctx, func(c zkConn) (err error) {
		data, err = c.get(ctx, path)
		return err
	})
	switch {
	case err == nil && len(data) == 0:
		return nil, &ZNodeError{Path: path, Ensemble: r.ensemble, Empty: true, Problem: "empty: it holds no server"}
	case err == nil:
		return data, nil
	case !errors.Is(err, errNoNode):
		return nil, fmt.Errorf("read znode %s: %w", path, err)
	}
	if err := r.checkParent(ctx); err != nil {
		return nil, err
	}
	return nil, errNoNode
}

// checkParent tells a cluster that is not there from one that is starting.
func (r *zkRegistry) checkParent(ctx context.Context) error {
	err := r.read(ctx, func(c zkConn) error {
		_, err := c.get(ctx, r.parent)
		return err
	})
	if err == nil {
		return nil
	}
	if !errors.Is(err, errNoNode) {
		return fmt.Errorf("read znode %s: %w", r.parent, err)
	}
	e := &ZNodeError{Path: r.parent, Ensemble: r.ensemble, Missing: true, Problem: "missing: no HBase has its znodes here (zookeeper.znode.parent)"}
	e.Suggestions = r.likelyParents(ctx)
	return e
}

// likelyParents looks for znodes that hold what HBase's parent holds: children
// of the root, and their children where the root holds only groups. It is help
// for an error text, so it gives up quietly and after few reads.
func (r *zkRegistry) likelyParents(ctx context.Context) []string {
	const most = 32
	var found []string
	reads := 0
	list := func(path string) []string {
		if reads++; reads > most {
			return nil
		}
		var names []string
		if r.read(ctx, func(c zkConn) (err error) { names, err = c.children(ctx, path); return err }) != nil {
			return nil
		}
		slices.Sort(names)
		return names
	}
	looks := func(children []string) bool {
		n := 0
		for _, name := range children {
			switch name {
			case "hbaseid", "rs", "meta-region-server", "backup-masters":
				n++
			}
		}
		return n >= 2
	}
	for _, name := range list("/") {
		if name == "zookeeper" {
			continue
		}
		path := "/" + name
		children := list(path)
		if looks(children) {
			found = append(found, path)
			continue
		}
		for _, sub := range children {
			if strings.Contains(sub, "hbase") && looks(list(path+"/"+sub)) {
				found = append(found, path+"/"+sub)
			}
		}
	}
	return found
}

func (r *zkRegistry) bad(name string, err error) error {
	return &ZNodeError{Path: r.parent + "/" + name, Ensemble: r.ensemble, Problem: err.Error()}
}

const (
	metaZNode      = "meta-region-server"
	masterZNode    = "master"
	clusterIDZNode = "hbaseid"
)

// MetaLocation reads meta-region-server.
func (r *zkRegistry) MetaLocation(ctx context.Context) (meta.ServerName, error) {
	where := "znode " + r.parent + "/" + metaZNode + " in ZooKeeper " + r.ensemble
	data, err := r.znode(ctx, metaZNode)
	if errors.Is(err, errNoNode) {
		return meta.ServerName{}, &NotYetError{"hbase:meta", where, "missing: meta has never been assigned; the cluster is starting"}
	}
	if err != nil {
		return meta.ServerName{}, err
	}
	server, state, err := decodeMetaServer(data)
	if err != nil {
		return meta.ServerName{}, r.bad(metaZNode, err)
	}
	if state != pb.RegionState_OPEN {
		return meta.ServerName{}, &NotYetError{"hbase:meta", where, fmt.Sprintf("%s on %s", state, server)}
	}
	return server, nil
}

// ActiveMaster reads master, an ephemeral znode.
func (r *zkRegistry) ActiveMaster(ctx context.Context) (meta.ServerName, error) {
	data, err := r.znode(ctx, masterZNode)
	if errors.Is(err, errNoNode) {
		return meta.ServerName{}, &NotYetError{"active master", "znode " + r.parent + "/" + masterZNode + " in ZooKeeper " + r.ensemble, "missing: no master is active"}
	}
	if err != nil {
		return meta.ServerName{}, err
	}
	server, err := decodeMaster(data)
	if err != nil {
		return meta.ServerName{}, r.bad(masterZNode, err)
	}
	return server, nil
}

// ClusterID reads hbaseid.
func (r *zkRegistry) ClusterID(ctx context.Context) (string, error) {
	data, err := r.znode(ctx, clusterIDZNode)
	if errors.Is(err, errNoNode) {
		return "", &NotYetError{"cluster id", "znode " + r.parent + "/" + clusterIDZNode + " in ZooKeeper " + r.ensemble, "missing: the cluster has never been started"}
	}
	if err != nil {
		return "", err
	}
	id, err := decodeClusterID(data)
	if err != nil {
		return "", r.bad(clusterIDZNode, err)
	}
	return id, nil
}

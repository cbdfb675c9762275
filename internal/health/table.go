package health

import (
	"sync"
	"sync/atomic"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Table holds the servers of one client. Reading is lock-free: the map is
// replaced, never changed.
type Table struct {
	servers atomic.Pointer[map[string]*Server] // by host:port

	mu sync.Mutex // writers of servers
}

// NewTable makes an empty table.
func NewTable() *Table {
	t := &Table{}
	t.servers.Store(&map[string]*Server{})
	return t
}

// Get gives the Server of the incarnation, making it if needed. Seeing a newer
// start code at a known address replaces the old incarnation, which is dead
// from then on. An older start code than the known one gives a dead Server
// that is not entered in the table. Start code 0 ("unknown") gives whoever is
// known at the address.
func (t *Table) Get(name meta.ServerName) *Server {
	addr := name.Address()
	if s := (*t.servers.Load())[addr]; s != nil && (s.name.StartCode == name.StartCode || name.StartCode == 0) {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := (*t.servers.Load())[addr]
	if old != nil && (old.name.StartCode == name.StartCode || name.StartCode == 0) {
		return old
	}
	s := &Server{name: name, addr: addr, table: t}
	if old != nil && old.name.StartCode > name.StartCode {
		s.state.Store(uint32(Dead))
		return s
	}
	next := make(map[string]*Server, len(*t.servers.Load())+1)
	for a, v := range *t.servers.Load() {
		next[a] = v
	}
	next[addr] = s
	t.servers.Store(&next)
	if old != nil {
		old.state.Store(uint32(Dead))
		old.epoch.Add(1)
	}
	return s
}

// Lookup gives the present incarnation at host:port, or nil.
func (t *Table) Lookup(hostport string) *Server { return (*t.servers.Load())[hostport] }

// All gives the present incarnations in no particular order.
func (t *Table) All() []*Server {
	m := *t.servers.Load()
	all := make([]*Server, 0, len(m))
	for _, s := range m {
		all = append(all, s)
	}
	return all
}

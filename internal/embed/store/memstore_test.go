package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// lossy is a table served by a server that can lose.
type lossy struct {
	*Table
	log *Log
	mem *Memstore
}

func newLossy(t testing.TB, s *Store) *lossy {
	tab := testTable(t, s)
	l := &lossy{Table: tab, log: s.NewLog()}
	l.mem = l.log.Open(tab, nil, nil)
	return l
}

func with(d cells.Durability, op Op) Op {
	op.Durability = d
	return op
}

func (l *lossy) do(t testing.TB, row string, ops ...Op) MutateResult {
	t.Helper()
	r, err := l.MutateRow(context.Background(), &RowMutation{Row: []byte(row), Ops: ops, Memstore: l.mem})
	if err != nil {
		t.Fatalf("mutate %q: %v", row, err)
	}
	return r
}

func lose(t testing.TB, l *Log, want int) {
	t.Helper()
	if n, err := l.Lose(); n != want || err != nil {
		t.Errorf("lost %d cells, %v; want %d", n, err, want)
	}
}

func TestLose(t *testing.T) {
	const skip, async, sync = cells.SkipWAL, cells.AsyncWAL, cells.SyncWAL
	k := &clock{1000}
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, s *Store, l *lossy)
		lost int
		want string // of row r
	}{
		{"by durability", func(t *testing.T, _ *Store, l *lossy) {
			l.do(t, "r", with(sync, put(at("f:a", 1, "sync"))))
			l.do(t, "r", put(at("f:b", 1, "default")))
			l.do(t, "r", with(cells.FsyncWAL, put(at("f:c", 1, "fsync"))))
			l.do(t, "r", with(skip, put(at("f:d", 1, "skip"))))
			l.do(t, "r", with(async, put(at("f:e", 1, "async"))))
			same(t, "before", get(t, l.Table, "r", newest()), "f:a@1=sync f:b@1=default f:c@1=fsync f:d@1=skip f:e@1=async")
		}, 2, "f:a@1=sync f:b@1=default f:c@1=fsync"},
		{"the table's durability", func(t *testing.T, _ *Store, l *lossy) {
			schema := *l.Schema()
			schema.Durability = skip
			l.SetSchema(&schema)
			l.do(t, "r", put(at("f:a", 1, "default")))
			l.do(t, "r", with(sync, put(at("f:b", 1, "sync"))))
		}, 1, "f:b@1=sync"},
		{"what it hid comes back", func(t *testing.T, _ *Store, l *lossy) {
			l.do(t, "r", put(at("f:a", 1, "old"), at("f:b", 1, "old"), at("g:", 1, "old")))
			l.do(t, "r", with(skip, put(at("f:a", 2, "new"))))
			l.do(t, "r", with(async, put(at("f:b", 1, "replaced"))))
			l.do(t, "r", with(skip, del()))
			same(t, "before", get(t, l.Table, "r", newest()), "")
		}, 4, "f:a@1=old f:b@1=old g:@1=old"},
		{"a synced write to another region of the server syncs its log", func(t *testing.T, s *Store, l *lossy) {
			other := s.Table(2, cells.NewSchema(fam("f", 1)))
			m := l.log.Open(other, nil, nil)
			l.do(t, "r", with(async, put(at("f:a", 1, "async"))), with(skip, put(at("f:b", 1, "skip"))))
			if _, err := other.MutateRow(t.Context(), &RowMutation{Row: []byte("x"), Ops: []Op{put(at("f:", 1, "v"))}, Memstore: m}); err != nil {
				t.Fatal(err)
			}
			l.do(t, "r", with(async, put(at("f:c", 1, "later"))))
		}, 2, "f:a@1=async"},
		{"another server's does not", func(t *testing.T, s *Store, l *lossy) {
			log := s.NewLog()
			defer log.Close()
			other := s.Table(2, cells.NewSchema(fam("f", 1)))
			m := log.Open(other, nil, nil)
			l.do(t, "r", with(async, put(at("f:a", 1, "async"))))
			if _, err := other.MutateRow(t.Context(), &RowMutation{Row: []byte("x"), Ops: []Op{put(at("f:", 1, "v"))}, Memstore: m}); err != nil {
				t.Fatal(err)
			}
		}, 1, ""},
		{"a second after the first", func(t *testing.T, _ *Store, l *lossy) {
			l.do(t, "r", with(async, put(at("f:a", 1, "1"))))
			k.ms += SyncInterval - 1
			l.do(t, "r", with(async, put(at("f:b", 1, "2"))))
			k.ms++
			l.do(t, "r", with(async, put(at("f:c", 1, "3"))))
			k.ms += SyncInterval - 1
		}, 1, "f:a@1=1 f:b@1=2"},
		{"a clock set back", func(t *testing.T, _ *Store, l *lossy) {
			l.do(t, "r", with(async, put(at("f:a", 1, "1"))))
			k.ms -= 10 * SyncInterval
			l.do(t, "r", with(async, put(at("f:b", 1, "2"))))
			k.ms += SyncInterval
		}, 0, "f:a@1=1 f:b@1=2"},
		{"flush", func(t *testing.T, _ *Store, l *lossy) {
			l.do(t, "r", with(skip, put(at("f:a", 1, "1"))), with(async, put(at("f:b", 1, "2"))))
			if err := l.Flush(t.Context(), nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			l.do(t, "r", with(skip, put(at("f:c", 1, "3"))))
		}, 1, "f:a@1=1 f:b@1=2"},
		{"flush of another region", func(t *testing.T, _ *Store, l *lossy) {
			l.mem.Close()
			l.mem = l.log.Open(l.Table, []byte("m"), nil)
			l.do(t, "r", with(skip, put(at("f:a", 1, "1"))))
			if err := l.Flush(t.Context(), nil, []byte("m"), nil); err != nil {
				t.Fatal(err)
			}
		}, 1, ""},
		{"closing, and opening elsewhere", func(t *testing.T, s *Store, l *lossy) {
			l.do(t, "r", with(skip, put(at("f:a", 1, "closed"))))
			l.mem.Close()
			l.mem = l.log.Open(l.Table, nil, nil)
			l.do(t, "r", with(skip, put(at("f:b", 1, "moved"))))
			to := s.NewLog()
			defer to.Close()
			to.Open(l.Table, nil, nil)
		}, 0, "f:a@1=closed f:b@1=moved"},
		{"an orderly stop", func(t *testing.T, s *Store, l *lossy) {
			l.do(t, "r", with(skip, put(at("f:a", 1, "1"))))
			l.log.Close()
			l.do(t, "r", with(skip, put(at("f:b", 1, "2"))))
		}, 0, "f:a@1=1 f:b@1=2"},
		{"snapshot", func(t *testing.T, s *Store, l *lossy) {
			l.do(t, "r", with(skip, put(at("f:a", 1, "1"))))
			if err := s.CopyData(t.Context(), l.ID(), 7); err != nil {
				t.Fatal(err)
			}
		}, 0, "f:a@1=1"},
		{"compacted", func(t *testing.T, _ *Store, l *lossy) {
			l.do(t, "r", put(at("f:a", 1, "1")))
			l.do(t, "r", with(skip, del(marker(cells.DeleteColumn, "f:a", 1))))
			if err := l.MajorCompact(t.Context(), nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			l.do(t, "r", with(skip, put(at("f:b", 1, "2"))))
		}, 1, ""},
		{"one key, replaced within one mutation", func(t *testing.T, _ *Store, l *lossy) {
			l.do(t, "r", with(sync, put(at("f:a", 1, "sync"))), with(skip, put(at("f:a", 1, "skip"))))
			l.do(t, "r", with(skip, put(at("f:b", 1, "skip"))), with(async, put(at("f:b", 1, "async"))), with(sync, put(at("f:c", 1, "sync"))))
			l.do(t, "r", with(skip, put(at("f:c", 1, "skip"))), with(skip, put(at("f:c", 1, "again"))), with(sync, put(at("f:c", 1, "last"))))
			l.do(t, "r", with(async, put(at("f:d", 1, "async"))), with(skip, put(at("f:d", 1, "skip"))))
			same(t, "before", get(t, l.Table, "r", newest()), "f:a@1=skip f:b@1=async f:c@1=last f:d@1=skip")
		}, 3, "f:a@1=sync f:b@1=async f:c@1=last"},
		{"of several rows", func(t *testing.T, _ *Store, l *lossy) {
			ms := []*RowMutation{
				{Row: []byte("r"), Memstore: l.mem, Ops: []Op{with(skip, put(at("f:a", 1, "1")))}},
				{Row: []byte("s"), Memstore: l.mem, Ops: []Op{with(async, put(at("f:a", 1, "1")))}},
			}
			if ok, err := l.MutateRows(t.Context(), ms, nil); !ok || err != nil {
				t.Fatal(ok, err)
			}
			ms = append(ms, &RowMutation{Row: []byte("r"), Memstore: l.mem, Ops: []Op{put(at("f:b", 1, "2"))}})
			_, errs := l.MutateBatch(t.Context(), ms)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			same(t, "s", get(t, l.Table, "s", all()), "f:a@1=1")
		}, 2, "f:b@1=2"},
		{"synced on what is lost", func(t *testing.T, _ *Store, l *lossy) {
			l.do(t, "r", with(skip, inc("f:n", 5)))
			l.do(t, "r", inc("f:n", 1))
			if n := number(t, l.Table, "r", "f:n"); n != 6 {
				t.Errorf("%d", n)
			}
		}, 1, fmt.Sprintf("f:n@%d=%s", 2001, "\x00\x00\x00\x00\x00\x00\x00\x06")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k.ms = 2000
			s := testStore(t, Options{Now: k.now})
			l := newLossy(t, s)
			tt.do(t, s, l)
			lose(t, l.log, tt.lost)
			lose(t, l.log, 0)
			same(t, "r", get(t, l.Table, "r", newest()), tt.want)
			if len(s.logs.open) != 0 {
				t.Errorf("%d logs are still known", len(s.logs.open))
			}
		})
	}
}

// A dead server writes nothing more, and an increment that was lost can be
// applied again under its nonce, once.
func TestLoseNonces(t *testing.T) {
	for _, d := range []cells.Durability{cells.SkipWAL, cells.AsyncWAL, cells.SyncWAL} {
		s := testStore(t, Options{})
		l := newLossy(t, s)
		op := with(d, inc("f:n", 1))
		op.Nonce = 17
		for range 2 {
			l.do(t, "r", op)
			if n := number(t, l.Table, "r", "f:n"); n != 1 {
				t.Errorf("%d: %d", d, n)
			}
		}
		if _, err := l.log.Lose(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.MutateRow(t.Context(), &RowMutation{Row: []byte("r"), Ops: []Op{inc("f:n", 1)}, Memstore: l.mem}); !errors.Is(err, ErrLost) {
			t.Errorf("%d: a write of a dead server: %v", d, err)
		}
		l = newLossy(t, s)
		for range 2 {
			l.do(t, "r", op)
			if n := number(t, l.Table, "r", "f:n"); n != 1 {
				t.Errorf("%d: again: %d", d, n)
			}
		}
		l.log.Close()
	}
}

// A nonce that is forgotten while its operation is under way is free once that
// has ended, and whoever waited for it applies it.
func TestForgetBusyNonce(t *testing.T) {
	var n nonces
	n.init(10)
	key := nonceKey{1, 2}
	begin := func() (bool, error) {
		_, taken, err := n.begin(t.Context(), key, 0, true)
		return taken, err
	}
	if taken, err := begin(); taken || err != nil {
		t.Fatal(taken, err)
	}
	n.forget(key)
	waited := make(chan bool)
	go func() {
		taken, err := begin()
		waited <- !taken && err == nil
	}()
	n.end(key, true, 1, 0)
	if !<-waited {
		t.Error("the nonce is taken")
	}
	n.end(key, true, 2, 0)
	// What has ended and was forgotten leaves nothing that could take the next
	// one's entry away.
	n.forget(key)
	if taken, err := begin(); taken || err != nil {
		t.Fatal(taken, err)
	}
	n.expire(nonceMillis * 2)
	if n.known[key] == nil {
		t.Error("an operation under way was forgotten")
	}
	n.end(key, false, 0, 0)
}

// Memory is bounded: what is beyond counts as flushed.
func TestLoseBound(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	l := s.NewLog()
	first := l.Open(tab, nil, []byte("b"))
	if _, err := tab.MutateRow(t.Context(), &RowMutation{Row: []byte("a"), Ops: []Op{with(cells.SkipWAL, put(at("f:a", 1, "v")))}, Memstore: first}); err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("q"), 32<<10)
	most, written := 0, 0
	for i := range byte(maxLogBytes/maxMemstoreBytes) + 2 {
		m := l.Open(tab, []byte{'b' + i}, []byte{'c' + i})
		for range maxMemstoreBytes/len(long) + 10 {
			c := at("f:", 1, "v")
			c.Qualifier = long
			if _, err := tab.MutateRow(t.Context(), &RowMutation{Row: []byte{'b' + i}, Ops: []Op{with(cells.SkipWAL, put(c))}, Memstore: m}); err != nil {
				t.Fatal(err)
			}
			written++
			most = max(most, l.bytes)
		}
	}
	if most > maxLogBytes+len(long)+100 {
		t.Errorf("%d bytes remembered", most)
	}
	n, err := l.Lose()
	if err != nil || n < 2 || n > written/2 {
		t.Errorf("lost %d of %d, %v", n, written, err)
	}
	same(t, "the small region", get(t, tab, "a", all()), "")
	if l.bytes != 0 || len(l.dirty) != 0 {
		t.Errorf("%d bytes and %d memstores after the end", l.bytes, len(l.dirty))
	}
}

// lossModel knows, of each cell written, what a kill would make of it.
type lossModel struct {
	*model
	now     func() int64
	journal []*journalCell
	logs    [2]logModel
}

type journalCell struct {
	cell   cells.Cell
	write  uint64
	region int
	skip   bool // until the region's next flush
	async  bool // until the log's next sync
	log    int
}

type logModel struct {
	waits bool
	since int64
}

// synced is the end of what waits in a log.
func (m *lossModel) synced(log int) {
	m.logs[log].waits = false
	for _, j := range m.journal {
		if j.log == log {
			j.async = false
		}
	}
}

func (m *lossModel) tick(log int) {
	if l := &m.logs[log]; l.waits && m.now()-l.since >= SyncInterval {
		m.synced(log)
	}
}

func (m *lossModel) flushed(region int) {
	for _, j := range m.journal {
		if j.region == region {
			j.skip, j.async = false, false
		}
	}
}

func (m *lossModel) written(write uint64, region, log int, ms ...*RowMutation) {
	m.tick(log)
	durable, async := false, false
	var fresh []*journalCell
	for _, mut := range ms {
		for _, op := range mut.Ops {
			d := op.Durability
			if d == cells.UseDefault {
				d = m.schema.Durability
			}
			durable = durable || d != cells.SkipWAL && d != cells.AsyncWAL
			async = async || d == cells.AsyncWAL
			for _, c := range op.Cells {
				c.Row = mut.Row
				fresh = append(fresh, &journalCell{cell: c, write: write, region: region, log: log, skip: d == cells.SkipWAL, async: d == cells.AsyncWAL})
			}
		}
	}
	m.journal = append(m.journal, fresh...)
	if durable {
		m.synced(log)
	} else if l := &m.logs[log]; async && !l.waits {
		l.waits, l.since = true, m.now()
	}
	m.rebuild()
}

// rebuild makes the cells out of the journal: of one write, the later of two
// cells with equal keys counts.
func (m *lossModel) rebuild() {
	m.cells = m.cells[:0]
	at := map[string]int{}
	for _, j := range m.journal {
		c := j.cell
		c.Seq = j.write
		key := string(appendCellKey(nil, 1, &c))
		if i, ok := at[key]; ok {
			// The later one comes later in the order of writes, too.
			m.cells[i] = c
			continue
		}
		at[key] = len(m.cells)
		m.cells = append(m.cells, c)
	}
}

func (m *lossModel) lose(log int) (lost int) {
	m.tick(log)
	kept := m.journal[:0]
	for _, j := range m.journal {
		if j.log == log && (j.skip || j.async) {
			lost++
			continue
		}
		kept = append(kept, j)
	}
	m.journal = kept
	m.logs[log] = logModel{}
	m.rebuild()
	return lost
}

// TestLoseModel: under random mutations of all durabilities, flushes, moves,
// compactions, alters and kills, exactly those cells are there that should be.
func TestLoseModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	rounds := uint64(12)
	if testing.Short() {
		rounds = 3
	}
	for i := range rounds {
		seed := seed + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { runLossModel(t, seed, 400) })
	}
}

func runLossModel(t *testing.T, seed uint64, steps int) {
	r := rand.New(rand.NewPCG(seed, 3))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	k := &clock{100_000}
	s := testStore(t, Options{Now: k.now})
	schema := cells.NewSchema(fam("f", 1+r.IntN(3)), fam("g", 1))
	m := &lossModel{model: &model{schema: schema}, now: k.now}
	tab := s.Table(1, schema)
	ctx := context.Background()
	// Two regions, two servers.
	bounds := [2][2][]byte{{nil, []byte("m")}, {[]byte("m"), nil}}
	logs := [2]*Log{s.NewLog(), s.NewLog()}
	var mems [2]*Memstore
	var at2 [2]int // server of each region
	open := func(region, server int) {
		at2[region] = server
		mems[region] = logs[server].Open(tab, bounds[region][0], bounds[region][1])
		m.flushed(region)
	}
	open(0, 0)
	open(1, r.IntN(2))
	column := func() string { return pick("f:", "f:p", "f:q", "g:q") }
	durability := func() cells.Durability { return cells.Durability(r.IntN(5)) }
	write := func(region int) *RowMutation {
		mut := &RowMutation{Row: []byte([][]string{{"a", "b\x00"}, {"m", "z"}}[region][r.IntN(2)]), Memstore: mems[region]}
		for range 1 + r.IntN(3) {
			var op Op
			ts := k.ms - int64(r.IntN(4))
			if r.IntN(3) > 0 {
				op = put(at(column(), ts, fmt.Sprint(len(m.journal), "-", r.IntN(1000))))
			} else {
				c := at(column(), ts, "")
				c.Type = []cells.Type{cells.Delete, cells.DeleteColumn, cells.DeleteFamily}[r.IntN(3)]
				if c.Type == cells.DeleteFamily {
					c.Qualifier = nil
				}
				op = del(c)
			}
			mut.Ops = append(mut.Ops, with(durability(), op))
		}
		return mut
	}
	check := func(what string) {
		t.Helper()
		raw := all()
		raw.Raw = true
		for _, q := range []*cells.Query{newest(), raw} {
			same(t, what, scanAll(t, tab, whole(q), 0), m.scan(whole(q), k.ms))
		}
	}
	writes := uint64(0)
	kills, lost := 0, 0
	for step := range steps {
		region := r.IntN(2)
		server := at2[region]
		switch n := r.IntN(40); {
		case n < 20:
			k.ms += int64(r.IntN(50))
			writes++
			mut := write(region)
			if _, err := tab.MutateRow(ctx, mut); err != nil {
				t.Fatal(err)
			}
			m.written(writes, region, server, mut)
		case n < 25:
			writes++
			ms := []*RowMutation{write(region), write(region), write(region)}
			if r.IntN(2) == 0 {
				_, errs := tab.MutateBatch(ctx, ms)
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
			} else if ok, err := tab.MutateRows(ctx, ms, nil); !ok || err != nil {
				t.Fatal(ok, err)
			}
			m.written(writes, region, server, ms...)
		case n < 28:
			k.ms += int64(r.IntN(2 * SyncInterval))
		case n < 31:
			check(fmt.Sprintf("step %d", step))
		case n < 33:
			tab.saved(bounds[region][0], bounds[region][1])
			if err := s.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			m.flushed(region)
		case n < 34:
			mems[region].Close()
			m.flushed(region)
			open(region, 1-server)
		case n < 35:
			changed := *m.schema
			changed.Durability = durability()
			m.schema = &changed
			tab.SetSchema(&changed)
			open(region, server)
		case n < 36:
			compactModel(t, tab, m.model, k.ms)
			m.journal = nil
			for _, c := range m.cells {
				m.journal = append(m.journal, &journalCell{cell: c, write: c.Seq, log: -1, region: -1})
			}
			// What is left is numbered before every later write, in its order.
			for i := range m.journal {
				writes++
				m.journal[i].write = writes
			}
			m.rebuild()
		default:
			kills++
			want := m.lose(server)
			lost += want
			n, err := logs[server].Lose()
			if err != nil || n > want {
				t.Fatalf("step %d: lost %d, at most %d can be, %v", step, n, want, err)
			}
			check(fmt.Sprintf("step %d, killed", step))
			logs[server] = s.NewLog()
			for i, on := range at2 {
				if on == server {
					open(i, r.IntN(2))
				}
			}
		}
		if t.Failed() {
			t.Fatalf("at step %d", step)
		}
	}
	check("at the end")
	for _, l := range logs {
		l.Close()
	}
	if kills > 5 && lost == 0 {
		t.Errorf("%d kills lost nothing", kills)
	}
}

// While writers of all kinds are at it, a kill loses nothing that was synced
// and answered, leaves no write in part, and what it answers last.
func TestLoseConcurrently(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	kills := 30
	if testing.Short() {
		kills = 6
	}
	for round := range kills {
		l := s.NewLog()
		mem := l.Open(tab, nil, nil)
		var synced, skipped [4]atomic.Int64
		var done atomic.Int64
		enough := make(chan struct{})
		var wg sync.WaitGroup
		for w := range synced {
			wg.Go(func() {
				row := fmt.Appendf(nil, "%d-%d", round, w)
				for n := int64(1); ; n++ {
					text := fmt.Sprint(n)
					d := []cells.Durability{cells.SyncWAL, cells.SkipWAL, cells.AsyncWAL}[n%3]
					m := &RowMutation{Row: row, Memstore: mem, Ops: []Op{with(d, put(at("f:v", n, text), at("g:v", n, text)))}}
					if _, err := tab.MutateRow(context.Background(), m); err != nil {
						if !errors.Is(err, ErrLost) {
							t.Error(err)
						}
						return
					}
					switch d {
					case cells.SyncWAL:
						synced[w].Store(n)
					case cells.SkipWAL:
						skipped[w].Store(n)
					}
					if done.Add(1) == 200 {
						close(enough)
					}
				}
			})
		}
		<-enough
		if n, err := l.Lose(); err != nil || n == 0 {
			t.Errorf("lost %d cells, %v", n, err)
		}
		// What is in the memtable already may still wait for its turn to be seen.
		everything := all()
		everything.Uncommitted = true
		state := scanAll(t, tab, whole(everything), 0)
		wg.Wait()
		same(t, "after the last writer", scanAll(t, tab, whole(everything), 0), state)
		for w := range synced {
			got, err := tab.Get(fmt.Appendf(nil, "%d-%d", round, w), newest())
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case len(got) == 0 && synced[w].Load() == 0:
			case len(got) != 2 || !bytes.Equal(got[0].Value, got[1].Value):
				t.Errorf("a row in part: %s", show(got))
			case got[0].Timestamp < synced[w].Load():
				t.Errorf("%s, but %d was synced", show(got), synced[w].Load())
			case got[0].Timestamp%3 == 1:
				t.Errorf("%s was not in the log", show(got))
			}
		}
	}
}

package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/doctor/readers"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// LockGroup is a lock that threads queue for.
type LockGroup struct {
	Lock, Class string
	Holder      string // thread name, "" if not in the dump
	HolderState string
	HolderTop   []string // frames
	SleepFrame  string
	HolderWaits string // the lock the holder wants itself
	Waiters     int
	Names       []string // of waiters, the first few
	Line        int
	Lookup      bool // waiters or holder are looking a region up
	RetrySleep  bool // holder sleeps between attempts
	InRPC       bool // holder waits for an answer
	Dumps       int
}

// DumpSummary is what is kept of a thread dump.
type DumpSummary struct {
	File      string
	Line      int
	Stamp     readers.Stamp
	Has       bool
	VM        string
	Total     int
	Groups    []LockGroup
	Deadlocks []readers.Deadlock
	// Contended counts threads blocked on their own call objects inside the RPC
	// client; Example is one of them.
	Contended int
	Example   string
	ExLine    int
	Sleepers  int // threads asleep between attempts
}

const maxGroups = 50

func anyFrame(frames []string, subs ...string) bool {
	for _, f := range frames {
		for _, s := range subs {
			if strings.Contains(f, s) {
				return true
			}
		}
	}
	return false
}

var lookupFrames = []string{"locateRegion", "prefetchRegionCache", "takeUserRegionLock", "relocateRegion", "MetaScanner.metaScan", "locateMeta"}

// realLock says that waiting for the class means queueing for a lock, not
// idling for work.
func realLock(class string) bool {
	return strings.Contains(class, "ReentrantLock$") || strings.Contains(class, "ReentrantReadWriteLock$") || strings.HasSuffix(class, "StampedLock")
}

// Summarize reduces a dump to its locks and deadlocks.
func Summarize(file string, d *readers.Dump) DumpSummary {
	s := DumpSummary{File: file, Line: d.Line, Stamp: d.Time, Has: d.HasTime, VM: d.VM, Total: d.Total, Deadlocks: d.Deadlocks}
	holder := map[string]*readers.Thread{}
	byName := map[string]*readers.Thread{}
	for i := range d.Threads {
		t := &d.Threads[i]
		if _, dup := byName[t.Name]; !dup {
			byName[t.Name] = t
		}
		for _, h := range t.Holds {
			holder[h] = t
		}
	}
	groups := map[string]*LockGroup{}
	var keys []string
	for i := range d.Threads {
		t := &d.Threads[i]
		if t.SleepFrame != "" && anyFrame(t.Frames, "RpcRetryingCaller", "withRetries", "callWithRetries") {
			s.Sleepers++
		}
		if t.Waits == "" {
			if t.State == "BLOCKED" && anyFrame(t.Frames, "hbase.ipc.RpcClient", "hbase.ipc.HBaseClient", "hbase.ipc.AbstractRpcClient", "hbase.ipc.BlockingRpc") {
				if s.Contended++; s.Example == "" {
					s.Example, s.ExLine = t.Name, t.Line
				}
			}
			continue
		}
		if t.Parked && !realLock(t.LockClass) {
			continue
		}
		g := groups[t.Waits]
		if g == nil {
			if len(groups) >= 5000 {
				continue
			}
			g = &LockGroup{Lock: t.Waits, Class: t.LockClass, Line: t.Line, Dumps: 1}
			groups[t.Waits] = g
			keys = append(keys, t.Waits)
			h := holder[t.Waits]
			if h == nil && t.Owner != "" {
				h = byName[t.Owner]
				g.Holder = t.Owner
			}
			if h != nil && h != t {
				g.Holder, g.HolderState, g.SleepFrame, g.HolderWaits, g.Line = h.Name, h.State, h.SleepFrame, h.Waits, h.Line
				if h.How != "" {
					g.HolderState += " (" + h.How + ")"
				}
				g.HolderTop = append([]string(nil), h.Frames[:min(len(h.Frames), 8)]...)
				g.Lookup = anyFrame(h.Frames, lookupFrames...)
				g.RetrySleep = h.SleepFrame != "" && anyFrame(h.Frames, "RpcRetryingCaller", "withRetries", "callWithRetries")
				g.InRPC = anyFrame(h.Frames, "RpcClientImpl.call", "RpcClient.call", "HBaseClient.call", "AbstractRpcClient.call", "BlockingRpcCallback", "ResultBoundedCompletionService", "RpcRetryingCallerWithReadReplicas.call")
			}
		}
		g.Waiters++
		if len(g.Names) < 12 {
			g.Names = append(g.Names, t.Name)
		}
		if !g.Lookup && anyFrame(t.Frames, lookupFrames...) {
			g.Lookup = true
		}
	}
	for _, k := range keys {
		s.Groups = append(s.Groups, *groups[k])
	}
	slices.SortStableFunc(s.Groups, func(a, b LockGroup) int { return b.Waiters - a.Waiters })
	if len(s.Groups) > maxGroups {
		s.Groups = slices.Clip(s.Groups[:maxGroups])
	}
	if len(s.Deadlocks) == 0 {
		s.Deadlocks = ownDeadlocks(d, holder)
	}
	return s
}

// ownDeadlocks finds cycles that the dump does not spell out.
func ownDeadlocks(d *readers.Dump, holder map[string]*readers.Thread) []readers.Deadlock {
	var out []readers.Deadlock
	done := map[*readers.Thread]bool{}
	for i := range d.Threads {
		path := map[*readers.Thread]int{}
		var chain []*readers.Thread
		for t := &d.Threads[i]; t != nil && !done[t] && t.Waits != "" && (!t.Parked || realLock(t.LockClass)); t = holder[t.Waits] {
			if at, seen := path[t]; seen {
				dl := readers.Deadlock{Line: t.Line}
				for _, c := range chain[at:] {
					dl.Names = append(dl.Names, c.Name)
					dl.Locks = append(dl.Locks, c.Waits)
					dl.Held = append(dl.Held, holder[c.Waits].Name)
				}
				if len(dl.Names) > 1 && len(out) < 16 {
					out = append(out, dl)
				}
				break
			}
			path[t] = len(chain)
			chain = append(chain, t)
		}
		for _, c := range chain {
			done[c] = true
		}
	}
	return out
}

// cycle separates the threads of a deadlock that wait for each other from
// those that only wait for them.
func cycle(d readers.Deadlock) (in, victims []string) {
	held := map[string]string{}
	for i, n := range d.Names {
		held[n] = d.Held[i]
	}
	for _, start := range d.Names {
		seen := map[string]bool{}
		n := start
		for held[n] != "" && !seen[n] {
			seen[n] = true
			n = held[n]
			if n == start {
				if !slices.Contains(in, start) {
					in = append(in, start)
				}
				break
			}
		}
		if !slices.Contains(in, start) && !slices.Contains(victims, start) {
			victims = append(victims, start)
		}
	}
	return in, victims
}

// convoyError is how many waiters make a convoy critical.
const convoyCritical = 5

func (j *judge) dumps() {
	merged := map[string]*LockGroup{}
	var keys []string
	deadlocks := map[string]bool{}
	var contended *DumpSummary
	total := 0
	for i := range j.c.Dumps {
		d := &j.c.Dumps[i]
		total++
		for _, dl := range d.Deadlocks {
			in, victims := cycle(dl)
			if len(in) < 2 {
				in = dl.Names
			}
			key := strings.Join(in, "|")
			if deadlocks[key] || len(deadlocks) > 20 {
				continue
			}
			deadlocks[key] = true
			f := finding.Finding{ID: "CLIENT_DEADLOCK", Severity: finding.Critical, Confidence: finding.Certain, Subject: strings.Join(in, " <-> "), Count: 1,
				Evidence: []finding.Evidence{{File: d.File, Line: dl.Line, Text: "threads that wait for each other's locks"}},
				Cause:    "these threads wait for each other's locks for ever: " + strings.Join(in, " <-> "),
				Fix:      []string{"restart the process; upgrade the library whose classes hold the locks"},
				Not:      []string{"a slow server: no answer will free them"},
				Fields:   map[string]string{"cycle": strings.Join(in, " <-> ")}}
			if len(victims) > 0 {
				f.Notes = append(f.Notes, "victims, waiting but not part of the cycle: "+strings.Join(victims, ", "))
				f.Fields["victims"] = strings.Join(victims, ", ")
			}
			root := &finding.Node{Label: "deadlock"}
			for k, n := range dl.Names {
				root.Children = append(root.Children, &finding.Node{Label: n, Detail: "waits for " + dl.Locks[k] + ", held by " + dl.Held[k]})
			}
			f.Plots = []finding.Plot{{Kind: "locks", Title: "Deadlock", Tree: root}}
			j.add(f)
		}
		if d.Contended > 0 && (contended == nil || d.Contended > contended.Contended) {
			contended = d
		}
		for k := range d.Groups {
			g := &d.Groups[k]
			key := d.File + g.Lock
			m := merged[key]
			if m == nil {
				c := *g
				c.Names = slices.Clone(g.Names)
				merged[key] = &c
				keys = append(keys, key)
				continue
			}
			m.Dumps++
			if g.Waiters > m.Waiters {
				n := m.Dumps
				*m = *g
				m.Dumps = n
			}
		}
	}
	for _, k := range keys {
		j.convoy(merged[k], strings.TrimSuffix(k, merged[k].Lock), total)
	}
	if contended != nil && !j.has("LOCK_CONVOY_META_LOOKUP") {
		j.add(finding.Finding{ID: "CLIENT_CONNECTION_CONTENTION", Severity: finding.Info, Confidence: finding.Likely, Subject: fmt.Sprintf("%d threads", contended.Contended), Count: contended.Contended,
			Evidence: []finding.Evidence{{File: contended.File, Line: contended.ExLine, Text: "\"" + contended.Example + "\" blocked on its own call object"}},
			Cause:    "many threads share one connection per server; each waits for its own answer, and the connection's writer takes turns",
			Fix:      []string{"raise hbase.client.ipc.pool.size, or spread threads over a few connections"},
			Not:      []string{"a deadlock", "a convoy on the region lookup: each thread has a lock of its own"}})
	}
}

func (j *judge) convoy(g *LockGroup, file string, total int) {
	if g.Waiters == 0 || !g.Lookup && g.Waiters < convoyCritical {
		return
	}
	f := finding.Finding{ID: "LOCK_CONVOY_META_LOOKUP", Severity: finding.Warning, Confidence: finding.Likely, Subject: "lock " + g.Lock, Count: g.Waiters,
		Evidence: []finding.Evidence{{File: file, Line: g.Line, Text: fmt.Sprintf("%q holds %s (%s), %s", g.Holder, g.Lock, g.Class, g.HolderState)}},
		Fields:   map[string]string{"lock": g.Lock, "holder": g.Holder, "holder_state": g.HolderState, "waiters": fmt.Sprint(g.Waiters), "deadlock": "false"},
		Not:      []string{"a deadlock: the holder goes on after its pause"}}
	if g.Waiters >= convoyCritical {
		f.Severity = finding.Critical
	}
	if g.Dumps > 1 {
		f.Notes = append(f.Notes, fmt.Sprintf("the same lock is contended in %d of %d dumps", g.Dumps, total))
	}
	root := &finding.Node{Label: g.Lock, Detail: g.Class}
	h := &finding.Node{Label: orUnknown(g.Holder, "holder not in the dump"), Detail: orUnknown(g.HolderState, "held")}
	for _, n := range g.Names {
		h.Children = append(h.Children, &finding.Node{Label: n, Detail: "waits"})
	}
	h.More = g.Waiters - len(g.Names)
	root.Children = []*finding.Node{h}
	f.Plots = []finding.Plot{{Kind: "locks", Title: fmt.Sprintf("%d threads behind %s", g.Waiters, g.Lock), Tree: root}}
	if !g.Lookup {
		f.ID, f.Severity = "LOCK_CONVOY", finding.Warning
		f.Cause = fmt.Sprintf("%d threads wait for one lock (%s)", g.Waiters, g.Class)
		f.Fix = []string{"see what the holder does: " + strings.Join(g.HolderTop, " < ")}
		j.add(f)
		return
	}
	f.Fields["cause"] = "LOOKUP_UNDER_REGION_LOCK"
	f.Cause = fmt.Sprintf("%d threads wait for the one lock behind which a connection looks regions up", g.Waiters)
	switch {
	case g.RetrySleep:
		f.Fields["cause"] = "RETRY_SLEEP_UNDER_REGION_LOCK"
		f.Cause += fmt.Sprintf("; its holder %q sleeps between attempts", g.Holder)
		if g.SleepFrame != "" {
			f.Fields["sleeps_at"] = g.SleepFrame
			f.Cause += " (" + g.SleepFrame + ")"
		}
	case g.InRPC:
		f.Fields["cause"] = "META_RPC_UNDER_REGION_LOCK"
		f.Cause += fmt.Sprintf("; its holder %q waits for an answer from hbase:meta's server", g.Holder)
	case g.Holder == "":
		f.Notes = append(f.Notes, "the holder is not in the dump: jstack -l shows who owns a java.util.concurrent lock")
	}
	pause := j.pause()
	retries, configured := j.get("hbase.client.retries.number")
	formula := "hbase.client.retries.number"
	if !configured {
		retries, formula = 31, "31, the constant in the client's code (35 where hbase-default.xml is loaded)"
	}
	s := scheduleOf(j.v, pause, 1)
	s0 := scheduleOf(j.v, pause, 0)
	hold := s.sum(int(min(max(retries, 1), 1000)) - 1)
	f.Numbers = append(f.Numbers, num("waiters", int64(g.Waiters), "threads", "waiting for the lock"))
	if !g.RetrySleep && j.known && j.v.Compare(retry.Version{Major: 1, Minor: 2, Patch: 7}) >= 0 {
		// From HBASE-19260 on the lock covers one scan of hbase:meta and is given
		// up before a pause.
		hold = j.getOr("hbase.client.scanner.timeout.period", 60000)
		f.Not = []string{"a deadlock: the holder gives the lock up when its scan of hbase:meta ends"}
		f.Numbers = append(f.Numbers, num("worst_hold", hold, "ms", "one scan of hbase:meta with its retries: hbase.client.scanner.timeout.period; this release gives the lock up before it pauses"))
	} else {
		f.Numbers = append(f.Numbers,
			num("worst_hold", hold, "ms", fmt.Sprintf("one holder whose attempts all fail at once: %d pauses of pause=%d, start-1; retries=%s", retries-1, pause, formula)),
			num("worst_hold_start0", s0.sum(int(min(retries, 1000))), "ms", fmt.Sprintf("%d pauses, start-0", retries)),
			num("rpc_time_not_included", retries*j.getOr("hbase.rpc.timeout", 60000), "ms", "attempts x hbase.rpc.timeout: to add if attempts time out instead of being refused"))
	}
	f.Numbers = append(f.Numbers,
		num("last_waiter", hold*int64(g.Waiters), "ms", fmt.Sprintf("%d x %d: with every holder failing, waiter number n gets its turn after n x hold", g.Waiters, hold)),
		num("holders_for_4h", (4*3600000+hold-1)/max(hold, 1), "holders", fmt.Sprintf("14400000 / %d, rounded up", hold)))
	f.Fix = []string{
		fmt.Sprintf("lower pause and retries until one hold is bearable: pause=20, retries=21 holds %s (start-0) to %s (start-1)", Seconds(scheduleOf(j.v, 20, 0).sum(20)), Seconds(scheduleOf(j.v, 20, 1).sum(20))),
		"share one connection between fewer threads", "use a client whose lookup lock has a time limit (HBASE-24956: 1.7, 2.3.2) or none (async client, this project's client)",
		"and find why hbase:meta could not be read"}
	j.add(f)
}

package readers

import (
	"bytes"
	"strings"
)

// Thread is one thread of a JVM dump.
type Thread struct {
	Name  string
	State string // RUNNABLE, BLOCKED, WAITING, TIMED_WAITING, PARKED, ...; "" if unknown
	How   string // "sleeping", "on object monitor", "parking", ...
	// Frames are the innermost frames, class.method, at most maxFrames.
	Frames []string
	// Holds are monitors and synchronizers this thread owns.
	Holds []string
	// Waits is the lock this thread wants, "" if none; Parked says that it waits
	// for a java.util.concurrent synchronizer, whose owner may not be in the dump.
	Waits  string
	Parked bool
	// Notify is the monitor it waits to be notified on (Object.wait), which it
	// has released.
	Notify string
	// LockClass is the class of what it waits for.
	LockClass string
	Owner     string // name of the lock's owner, if the dump says so (OpenJ9, deadlock section)
	Daemon    bool
	Line      int
	// SleepFrame is the first frame below Thread.sleep with its source position.
	SleepFrame string
}

// Deadlock is a cycle the JVM found itself.
type Deadlock struct {
	Names []string // all threads of the section, victims included, in order
	Locks []string // what each waits for
	Held  []string // by whom it is held
	Line  int
}

// Dump is one thread dump.
type Dump struct {
	Line      int
	Time      Stamp
	HasTime   bool
	VM        string // "hotspot" or "openj9"
	Threads   []Thread
	Total     int // threads seen, those without locks and interest included
	States    map[string]int
	Deadlocks []Deadlock
}

const (
	maxFrames    = 40
	maxThreads   = 20000
	maxHolds     = 64
	maxDeadlocks = 16
)

// DumpReader reads thread dumps of HotSpot 6 to 25 (jstack, kill -3, jcmd) and
// the text dumps of OpenJ9, pushed in line by line, mixed with other lines or
// not. Threads that neither hold nor want a lock and do not sleep are counted
// and dropped, so that memory follows what matters.
type DumpReader struct {
	// Done gets each dump when it ends; the dump is the receiver's.
	Done func(*Dump)

	dump     *Dump
	thread   Thread
	open     bool
	sleeping bool // the next frame is the one below Thread.sleep
	dead     *Deadlock
	inDead   bool
	synch    bool // inside "Locked ownable synchronizers"
	last     Stamp
	lastAt   int
	lineNo   int
	frameOf  map[string]string
}

// Active says whether a dump is being read.
func (r *DumpReader) Active() bool { return r.dump != nil }

// Feed reads a block of lines; base is the number of lines before it.
func (r *DumpReader) Feed(block []byte, base int64) {
	r.lineNo = int(base)
	for len(block) > 0 {
		n := indexOr(block, '\n')
		r.line(block[:n])
		block = block[min(n+1, len(block)):]
	}
}

// Close ends the last dump.
func (r *DumpReader) Close() { r.finish() }

func (r *DumpReader) line(raw []byte) {
	r.lineNo++
	b := bytes.TrimLeft(raw, " \t")
	if len(b) == 0 {
		if r.open && !r.inDead {
			r.synch = false
		}
		return
	}
	switch b[0] {
	case '"':
		r.header(b, raw)
		return
	case 'F':
		if bytes.HasPrefix(b, []byte("Full thread dump")) {
			r.finish()
			r.begin("hotspot")
			return
		}
		if bytes.HasPrefix(b, []byte("Found one Java-level deadlock")) || bytes.HasPrefix(b, []byte("Found ")) && bytes.Contains(b, []byte("deadlock")) {
			r.closeThread()
			if r.dump == nil {
				r.begin("hotspot")
			}
			r.inDead = true
			r.dead = nil
			if bytes.HasPrefix(b, []byte("Found one")) && len(r.dump.Deadlocks) < maxDeadlocks {
				r.dump.Deadlocks = append(r.dump.Deadlocks, Deadlock{Line: r.lineNo})
				r.dead = &r.dump.Deadlocks[len(r.dump.Deadlocks)-1]
			}
			return
		}
	case 'J':
		if bytes.HasPrefix(b, []byte("Java stack information for the threads listed above")) {
			r.inDead, r.dead = false, nil
			// The stacks after it repeat threads of the dump.
			r.closeThread()
			r.synch = false
			return
		}
	case '1', '2', '3', '4', '5':
		if len(b) > 4 && b[1] >= 'A' && b[1] <= 'Z' && r.openj9(b) {
			return
		}
	case 'j':
		if bytes.HasPrefix(b, []byte("java.lang.Thread.State: ")) && r.open {
			s := string(b[len("java.lang.Thread.State: "):])
			r.thread.State, r.thread.How, _ = strings.Cut(strings.TrimSpace(s), " ")
			r.thread.How = strings.Trim(r.thread.How, "()\r ")
			return
		}
	case 'a':
		if bytes.HasPrefix(b, []byte("at ")) && r.open && !r.inDead {
			r.frame(b[3:])
			return
		}
	case '-':
		if r.open && !r.inDead {
			r.lock(b)
			return
		}
	case 'L':
		if bytes.HasPrefix(b, []byte("Locked ownable synchronizers")) {
			r.synch = true
			return
		}
		if bytes.HasPrefix(b, []byte("Locked synchronizers")) {
			r.synch = true
			return
		}
	case 'w':
		if r.dead != nil && r.deadlockLine(b) {
			return
		}
	case 'c', 'o', 'i':
		if r.dead != nil && r.deadlockLine(b) {
			return
		}
	}
	if s, n, ok := ParseStamp(raw); ok && n >= len(bytes.TrimRight(raw, "\r ")) {
		r.last, r.lastAt = s, r.lineNo
		return
	}
	// A log line of another program ends what is open.
	if r.open && raw[0] != ' ' && raw[0] != '\t' {
		if _, _, ok := ParseStamp(raw); ok {
			r.closeThread()
		}
	}
}

func (r *DumpReader) begin(vm string) {
	r.dump = &Dump{Line: max(r.lineNo, 1), VM: vm, States: map[string]int{}}
	if r.lastAt > 0 && r.lineNo-r.lastAt <= 2 {
		r.dump.Time, r.dump.HasTime = r.last, true
	}
}

func (r *DumpReader) finish() {
	r.closeThread()
	if d := r.dump; d != nil && (d.Total > 0 || len(d.Deadlocks) > 0) {
		r.Done(d)
	}
	r.dump, r.inDead, r.dead = nil, false, nil
}

// header reads "name" #12 daemon prio=5 os_prio=0 tid=0x... nid=0x... state [0x...]
func (r *DumpReader) header(b, raw []byte) {
	end := bytes.LastIndexByte(b, '"')
	if end < 1 {
		return
	}
	name, rest := b[1:end], b[end+1:]
	if r.inDead && (len(rest) == 0 || rest[0] == ':') {
		if r.dead == nil && r.dump != nil && len(r.dump.Deadlocks) < maxDeadlocks {
			r.dump.Deadlocks = append(r.dump.Deadlocks, Deadlock{Line: r.lineNo})
			r.dead = &r.dump.Deadlocks[len(r.dump.Deadlocks)-1]
		}
		if r.dead != nil && len(r.dead.Names) < 64 {
			r.dead.Names = append(r.dead.Names, string(name))
			r.dead.Locks = append(r.dead.Locks, "")
			r.dead.Held = append(r.dead.Held, "")
		}
		return
	}
	if len(rest) > 0 && rest[0] == ':' && len(bytes.TrimSpace(rest)) == 1 { // "Java stack information" repeats
		r.closeThread()
		return
	}
	if !bytes.Contains(rest, []byte("tid=")) && !bytes.Contains(rest, []byte("nid=")) && !bytes.Contains(rest, []byte("prio=")) && !bytes.Contains(rest, []byte("Id=")) && !bytes.HasPrefix(bytes.TrimSpace(rest), []byte("#")) && !(len(rest) == 0 && raw[0] == '"') {
		return
	}
	r.inDead, r.dead = false, nil
	r.closeThread()
	if r.dump == nil {
		r.begin("hotspot")
	}
	r.open, r.synch, r.sleeping = true, false, false
	t := &r.thread
	*t = Thread{Frames: t.Frames[:0], Holds: nil, Line: r.lineNo, Name: string(name[:min(len(name), 200)])}
	t.Daemon = bytes.Contains(rest, []byte(" daemon "))
	// jcmd and MXBean dumps put the state on the header: "x" Id=5 BLOCKED on cls@hash owned by "y" Id=7
	if i := bytes.Index(rest, []byte("Id=")); i >= 0 {
		if f := bytes.Fields(rest[i+3:]); len(f) > 1 {
			t.State = string(f[1])
			for k, w := range f {
				if string(w) == "on" && k+1 < len(f) && t.State != "RUNNABLE" {
					t.Waits, t.Parked = string(f[k+1]), t.State != "BLOCKED"
					t.LockClass, _, _ = strings.Cut(t.Waits, "@")
				}
			}
			if o := bytes.Index(rest, []byte("owned by \"")); o >= 0 {
				own := rest[o+10:]
				t.Owner = string(own[:indexOr(own, '"')])
			}
		}
	}
	for _, w := range [...]struct{ text, state, how string }{{"waiting for monitor entry", "BLOCKED", "on object monitor"}, {"in Object.wait()", "WAITING", "on object monitor"}, {"waiting on condition", "", ""}, {"runnable", "RUNNABLE", ""}, {"sleeping", "TIMED_WAITING", "sleeping"}} {
		if t.State == "" && bytes.Contains(rest, []byte(w.text)) {
			t.State, t.How = w.state, w.how
		}
	}
}

// intern keeps one copy of each frame: dumps repeat them by the thousand.
func (r *DumpReader) intern(b []byte) string {
	if s, ok := r.frameOf[string(b)]; ok {
		return s
	}
	if r.frameOf == nil || len(r.frameOf) > 20000 {
		r.frameOf = make(map[string]string)
	}
	s := string(b)
	r.frameOf[s] = s
	return s
}

func (r *DumpReader) frame(b []byte) {
	t := &r.thread
	b = bytes.TrimRight(b, "\r ")
	if i := bytes.IndexByte(b, '/'); i > 0 && i < indexOr(b, '(') { // module: java.base@17/
		if j := bytes.LastIndexByte(b[:indexOr(b, '(')], '/'); j > 0 && !bytes.Contains(b[:j], []byte("$$Lambda")) {
			b = b[j+1:]
		}
	}
	if r.sleeping && !bytes.HasPrefix(b, []byte("java.lang.Thread.")) && !bytes.HasPrefix(b, []byte("java.util.concurrent.TimeUnit")) {
		t.SleepFrame, r.sleeping = string(b[:min(len(b), 300)]), false
	}
	if bytes.HasPrefix(b, []byte("java.lang.Thread.sleep")) {
		r.sleeping = true
	}
	if len(t.Frames) < maxFrames {
		t.Frames = append(t.Frames, r.intern(b[:min(indexOr(b, '('), 200)]))
	}
}

// lock reads "- locked <0x...> (a cls)" and its kin.
func (r *DumpReader) lock(b []byte) {
	t := &r.thread
	lt, gt := bytes.IndexByte(b, '<'), bytes.IndexByte(b, '>')
	id := ""
	if lt >= 0 && gt > lt && gt-lt < 100 {
		id = string(b[lt+1 : gt])
		if id == "no object reference available" || bytes.HasPrefix(b[lt:], []byte("<owner")) {
			id = ""
		}
	} else if i := bytes.IndexByte(b, '@'); i > 0 { // MXBean form: -  locked cls@hash
		if f := bytes.Fields(b); len(f) > 0 {
			id = string(f[len(f)-1])
		}
	}
	class := ""
	if i := bytes.Index(b, []byte("(a ")); i >= 0 {
		c := b[i+3:]
		class = r.intern(bytes.TrimRight(c[:min(indexOr(c, ')'), 200)], "\r "))
	}
	what := bytes.TrimLeft(b[1:], " ")
	switch {
	case bytes.HasPrefix(what, []byte("waiting to lock")), bytes.HasPrefix(what, []byte("waiting to re-lock")), bytes.HasPrefix(what, []byte("blocked on")):
		if t.Waits == "" {
			t.Waits, t.LockClass = id, class
			if bytes.HasPrefix(what, []byte("waiting to re-lock")) {
				t.Notify = id
			}
		}
	case bytes.HasPrefix(what, []byte("parking to wait for")):
		if t.Waits == "" {
			t.Waits, t.LockClass, t.Parked = id, class, true
		}
	case bytes.HasPrefix(what, []byte("waiting on")):
		t.Notify = id
		if t.LockClass == "" {
			t.LockClass = class
		}
	case bytes.HasPrefix(what, []byte("locked")), bytes.HasPrefix(what, []byte("owns")), r.synch:
		if bytes.HasPrefix(what, []byte("None")) || id == "" {
			return
		}
		// In Object.wait() the monitor is printed as locked and is free; a thread
		// that re-enters prints the same line as locked and as wanted.
		if id == t.Notify || id == t.Waits {
			return
		}
		for _, h := range t.Holds {
			if h == id {
				return
			}
		}
		if len(t.Holds) < maxHolds {
			t.Holds = append(t.Holds, id)
		}
	}
}

func (r *DumpReader) closeThread() {
	if !r.open {
		return
	}
	r.open = false
	t := &r.thread
	// BLOCKED in Object.wait without a "waiting on" line (old HotSpot): the frame's
	// monitor is the one it was waiting on.
	if len(t.Frames) > 0 && t.Frames[0] == "java.lang.Object.wait" && t.Notify == "" && len(t.Holds) > 0 {
		t.Notify, t.Holds = t.Holds[0], t.Holds[1:]
	}
	r.dump.Total++
	state := t.State
	if state == "" {
		state = "unknown"
	}
	if len(r.dump.States) < 64 {
		r.dump.States[state]++
	}
	if (len(t.Holds) > 0 || t.Waits != "" || t.Notify != "" || t.SleepFrame != "" || t.State == "BLOCKED") && len(r.dump.Threads) < maxThreads {
		keep := *t
		keep.Frames = append([]string(nil), t.Frames...)
		r.dump.Threads = append(r.dump.Threads, keep)
	}
}

// deadlockLine reads the "waiting to lock monitor ..." and "which is held by"
// lines of a deadlock section.
func (r *DumpReader) deadlockLine(b []byte) bool {
	n := len(r.dead.Names) - 1
	if n < 0 {
		return false
	}
	switch {
	case bytes.HasPrefix(b, []byte("waiting to lock")), bytes.HasPrefix(b, []byte("waiting for")), bytes.HasPrefix(b, []byte("waiting on")):
		s := string(b[:min(len(b), 300)])
		if i := strings.Index(s, "object 0x"); i >= 0 {
			s = s[i+7:]
		} else if i := strings.Index(s, "0x"); i >= 0 {
			s = s[i:]
		}
		r.dead.Locks[n] = strings.Trim(s, " ,()\r")
	}
	if i := bytes.Index(b, []byte("held by \"")); i >= 0 {
		o := b[i+9:]
		r.dead.Held[n] = string(o[:indexOr(o, '"')])
	}
	return bytes.HasPrefix(b, []byte("waiting")) || bytes.HasPrefix(b, []byte("which")) || bytes.Contains(b, []byte("held by"))
}

// openj9 reads the tagged lines of a javacore file.
func (r *DumpReader) openj9(b []byte) bool {
	tagEnd := bytes.IndexAny(b, " \t")
	if tagEnd < 0 {
		return false
	}
	tag, rest := string(b[:tagEnd]), bytes.TrimSpace(b[tagEnd:])
	switch tag {
	case "1TIDATETIME":
		if i := bytes.Index(rest, []byte("20")); i >= 0 {
			v := bytes.Replace(rest[i:], []byte(" at "), []byte(" "), 1)
			if s, _, ok := ParseStamp(v); ok {
				r.last, r.lastAt = s, r.lineNo
			}
		}
	case "1LKDEADLOCK":
		if r.dump == nil {
			r.begin("openj9")
		}
		if len(r.dump.Deadlocks) < maxDeadlocks {
			r.dump.Deadlocks = append(r.dump.Deadlocks, Deadlock{Line: r.lineNo})
			r.dead = &r.dump.Deadlocks[len(r.dump.Deadlocks)-1]
		}
	case "2LKDEADLOCKTHR":
		if r.dead != nil && len(r.dead.Names) < 64 {
			r.dead.Names = append(r.dead.Names, quoted(rest))
			r.dead.Locks = append(r.dead.Locks, "")
			r.dead.Held = append(r.dead.Held, "")
		}
	case "4LKDEADLOCKOBJ":
		if r.dead != nil && len(r.dead.Locks) > 0 {
			r.dead.Locks[len(r.dead.Locks)-1] = string(rest[:min(len(rest), 200)])
		}
	case "3LKDEADLOCKOWN":
	case "2LKDEADLOCKOWN":
	case "3XMTHREADINFO":
		r.closeThread()
		if len(rest) == 0 || rest[0] != '"' {
			return true
		}
		if r.dump == nil {
			r.begin("openj9")
			r.dump.Time, r.dump.HasTime = r.last, r.lastAt > 0
		}
		r.dead = nil
		r.open, r.synch, r.sleeping = true, false, false
		r.thread = Thread{Frames: r.thread.Frames[:0], Line: r.lineNo, Name: quoted(rest)}
		if i := bytes.Index(rest, []byte("state:")); i >= 0 {
			s := rest[i+6:]
			r.thread.State = map[string]string{"B": "BLOCKED", "CW": "WAITING", "P": "WAITING", "R": "RUNNABLE", "S": "SUSPENDED", "Z": "ZOMBIE", "MW": "BLOCKED"}[string(s[:min(indexOr(s, ','), 2)])]
			if bytes.HasPrefix(s, []byte("P,")) {
				r.thread.How, r.thread.Parked = "parking", true
			}
		}
	case "3XMTHREADBLOCK":
		// Blocked on: java/lang/Object@0x00000000E0 Owned by: "x" (J9VMThread:0x..., ...)
		if !r.open {
			return true
		}
		t := &r.thread
		s := string(rest[:min(len(rest), 500)])
		kind, obj, _ := strings.Cut(s, ": ")
		obj, _, _ = strings.Cut(obj, " ")
		t.LockClass, _, _ = strings.Cut(obj, "@")
		t.LockClass = strings.ReplaceAll(t.LockClass, "/", ".")
		switch kind {
		case "Blocked on":
			t.Waits, t.State, t.How = obj, "BLOCKED", "on object monitor"
		case "Parked on":
			t.Waits, t.Parked = obj, true
		case "Waiting on":
			t.Notify = obj
		}
		if i := strings.Index(s, "Owned by: \""); i >= 0 {
			o := s[i+11:]
			if j := strings.LastIndexByte(o, '"'); j >= 0 {
				t.Owner = o[:j]
			}
		}
	case "4XESTACKTRACE":
		if r.open && bytes.HasPrefix(rest, []byte("at ")) {
			f := bytes.ReplaceAll(rest[3:], []byte{'/'}, []byte{'.'})
			r.frame(f)
			if len(r.thread.Frames) > 0 && strings.HasPrefix(r.thread.Frames[0], "java.lang.Thread.sleep") {
				r.thread.State, r.thread.How = "TIMED_WAITING", "sleeping"
			}
		}
	case "5XESTACKTRACE":
		// (entered lock: java/lang/Object@0x00000000E0, entry count: 1)
		if i := bytes.Index(rest, []byte("entered lock: ")); i >= 0 && r.open && len(r.thread.Holds) < maxHolds {
			o := rest[i+14:]
			id := string(o[:min(bytes.IndexAny(append(o[:len(o):len(o)], ','), ",)"), 200)])
			if id != r.thread.Waits && id != r.thread.Notify {
				r.thread.Holds = append(r.thread.Holds, id)
			}
		}
	case "1XMTHDINFO", "0SECTION":
		r.closeThread()
	default:
		return len(tag) > 5
	}
	return true
}

func quoted(b []byte) string {
	i := bytes.IndexByte(b, '"')
	if i < 0 {
		return string(b[:min(len(b), 200)])
	}
	b = b[i+1:]
	if j := bytes.LastIndexByte(b, '"'); j >= 0 {
		b = b[:j]
	}
	return string(b[:min(len(b), 200)])
}

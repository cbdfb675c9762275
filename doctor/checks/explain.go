package checks

import (
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/zk"
)

// RetryTable is a schedule attempt by attempt, in both index conventions.
type RetryTable struct {
	HBase            string       `json:"hbase"`
	Pause            int64        `json:"pause_ms"`
	Retries          int64        `json:"retries"`
	RPCTimeout       int64        `json:"rpc_timeout_ms"`
	OperationTimeout int64        `json:"operation_timeout_ms"` // 0: unlimited
	Attempts         int          `json:"attempts"`
	Convention       string       `json:"convention"` // of this release's region calls
	Multipliers      []int        `json:"multipliers"`
	LongestPause     int64        `json:"longest_pause_ms"`
	Columns          []RetryTotal `json:"totals"`
	Steps            []RetryStep  `json:"steps"`
	Ends             []RetryEnd   `json:"ends"`
	Notes            []string     `json:"notes,omitempty"`
}

// RetryTotal are the totals of one convention.
type RetryTotal struct {
	Convention string `json:"convention"`
	// IfAttempts is the sum when the number counts attempts (N-1 pauses), as up
	// to 1.x; IfRetries when it counts retries (N pauses), as from 2.0 on and in
	// some older code paths.
	IfAttempts int64 `json:"sleep_if_attempts_ms"`
	IfRetries  int64 `json:"sleep_if_retries_ms"`
	Jitter     int64 `json:"jitter_at_most_ms"`
}

// RetryStep is one attempt.
type RetryStep struct {
	Attempt int     `json:"attempt"`
	Sleep   []int64 `json:"sleep_ms"` // after it, per convention
	Sum     []int64 `json:"sum_ms"`
}

// RetryEnd says where an operation ends when all attempts fail alike.
type RetryEnd struct {
	Case     string `json:"case"`
	Attempts int    `json:"attempts"`
	Total    int64  `json:"total_ms"`
	By       string `json:"ended_by"`
}

// ExplainRetries computes a schedule. Zero settings mean the release's
// defaults.
func ExplainRetries(release string, pause, retries, rpc, op int64) (RetryTable, error) {
	v, err := Release(release)
	if err != nil {
		return RetryTable{}, err
	}
	def := retry.JavaDefaults(v)
	if pause == 0 {
		pause = ms(def.Pause)
	}
	if retries < 0 {
		retries = int64(def.Retries)
	}
	if rpc == 0 {
		rpc = ms(def.RPCTimeout)
	}
	if op == 0 {
		op = ms(def.OperationTimeout)
	}
	switch {
	case pause < 0 || pause > 24*3600000:
		return RetryTable{}, fmt.Errorf("pause %d: want 1 ms to 24 h", pause)
	case retries > 10000:
		return RetryTable{}, fmt.Errorf("retries %d: more than 10000 is not a schedule", retries)
	}
	t := RetryTable{HBase: release, Pause: pause, Retries: retries, RPCTimeout: rpc, OperationTimeout: op, Attempts: retry.Attempts(v, int(retries)), Multipliers: retry.Multipliers(v)}
	first := retry.FirstIndex(v, retry.RegionCalls)
	t.Convention = fmt.Sprintf("start-%d", first)
	t.LongestPause = pause * int64(t.Multipliers[len(t.Multipliers)-1])
	starts := []int{0, 1}
	if first == 2 {
		starts = append(starts, 2)
	}
	for _, st := range starts {
		s := scheduleOf(v, pause, st)
		n := int(max(retries, 1))
		t.Columns = append(t.Columns, RetryTotal{s.String(), s.sum(n - 1), s.sum(n), jitter(s.sum(n))})
	}
	for n := 1; n <= int(min(max(retries, 1), 200)); n++ {
		step := RetryStep{Attempt: n}
		for _, st := range starts {
			s := scheduleOf(v, pause, st)
			step.Sleep = append(step.Sleep, s.sleep(n))
			step.Sum = append(step.Sum, s.sum(n))
		}
		t.Steps = append(t.Steps, step)
	}
	set := retry.JavaSettings{Pause: time.Duration(pause) * msec, Retries: int(retries), RPCTimeout: time.Duration(rpc) * msec, OperationTimeout: time.Duration(op) * msec}
	end := func(name string, call func(int, time.Duration) (time.Duration, bool)) {
		run := retry.SimulateJava(v, retry.RegionCalls, set, call)
		by := "the attempt limit"
		if run.End == retry.JavaTimeout {
			by = fmt.Sprintf("the clock: callTimeout=%d, callDuration=%d", op, ms(run.Duration))
		}
		t.Ends = append(t.Ends, RetryEnd{name, run.Attempts, ms(run.Total), by})
	}
	end("every attempt fails at once", func(int, time.Duration) (time.Duration, bool) { return 0, false })
	end("every attempt runs into its timeout", func(_ int, limit time.Duration) (time.Duration, bool) {
		if limit <= 0 {
			limit = time.Hour
		}
		return limit, false
	})
	if op > 0 && rpc+pause > op {
		t.Notes = append(t.Notes, fmt.Sprintf("rpc timeout %d leaves no room for a retry within %d: the first slow attempt is the last", rpc, op))
	}
	if t.Attempts == 1 {
		t.Notes = append(t.Notes, "one attempt in total: no retry whatever happens")
	}
	for _, c := range t.Columns {
		if c.Convention == t.Convention && c.IfAttempts < 90000 {
			t.Notes = append(t.Notes, fmt.Sprintf("all pauses together are %s, less than the 90 s after which a crashed server is noticed by default: every client gives up before failover begins", Seconds(c.IfAttempts)))
		}
	}
	t.Notes = append(t.Notes, "pauses get 0 to 1 % on top; time inside calls is not in the sums")
	return t, nil
}

// SessionTable is the arithmetic of a ZooKeeper session.
type SessionTable struct {
	Client      string       `json:"client"`
	Requested   int64        `json:"requested_ms"`
	Min         int64        `json:"min_ms"`
	Max         int64        `json:"max_ms"`
	Tick        int64        `json:"tick_ms"`
	Ensemble    int          `json:"ensemble"`
	Negotiated  int64        `json:"negotiated_ms"`
	Clamped     bool         `json:"clamped"`
	Ping        int64        `json:"ping_ms"`
	Read        int64        `json:"read_timeout_ms"`
	Connect     int64        `json:"connect_timeout_ms"`
	Left        int64        `json:"left_after_silence_ms"`
	Fit         int          `json:"whole_attempts_that_fit"`
	Patience    int64        `json:"patience_with_dark_ensemble_ms"`
	FitConnect  int64        `json:"connect_timeout_that_would_fit_ms"`
	ExpiryMin   int64        `json:"expiry_after_at_least_ms"`
	ExpiryMax   int64        `json:"expiry_after_at_most_ms"`
	ClientSays  int64        `json:"client_declares_expiry_ms"` // 0: never
	Notes       []string     `json:"notes,omitempty"`
	SourceLines []SourceLine `json:"sources"`
}

// SourceLine says where a rule comes from.
type SourceLine struct {
	Rule   string `json:"rule"`
	Source string `json:"source"`
}

// ExplainSession computes a session's timers. minimum and maximum of 0 are 2
// and 20 ticks. client is java-3.4, java-3.9 or go (this project's).
func ExplainSession(requested, minimum, maximum, tick int64, ensemble int, client string) (SessionTable, error) {
	if tick <= 0 {
		tick = 2000
	}
	if minimum <= 0 {
		minimum = 2 * tick
	}
	if maximum <= 0 {
		maximum = 20 * tick
	}
	if requested <= 0 || requested > 24*3600000 || ensemble < 1 || ensemble > 1000 || minimum > maximum {
		return SessionTable{}, fmt.Errorf("want a session of 1 ms to 24 h, 1 to 1000 servers, minimum <= maximum")
	}
	n := time.Duration(requested) * msec
	n = zk.Negotiate(n, time.Duration(minimum)*msec, time.Duration(maximum)*msec)
	stock := zk.StockTimers(n, ensemble)
	t := SessionTable{Client: client, Requested: requested, Min: minimum, Max: maximum, Tick: tick, Ensemble: ensemble, Negotiated: ms(n), Clamped: ms(n) != requested,
		Ping: ms(stock.Ping), Read: ms(stock.Read), Connect: ms(stock.Connect), Fit: stock.Attempts}
	t.Left = t.Negotiated - t.Read
	t.Patience = t.Read + int64(ensemble)*t.Connect
	t.FitConnect = t.Left / int64(ensemble)
	t.ExpiryMin, t.ExpiryMax = t.Negotiated+1, t.Negotiated+tick
	t.SourceLines = []SourceLine{
		{"negotiated = min(max(requested, minimum), maximum); 2 and 20 ticks by default", "ZooKeeperServer, 3.4 to 3.9"},
		{"read timeout 2/3, connect timeout session/servers", "ClientCnxn of the Java client, 3.4 to 3.9"},
		{"expiry at the first tick boundary after last touch + session", "SessionTracker; wall clock up to 3.4, monotonic clock from 3.5"},
	}
	switch client {
	case "java-3.4":
		t.Notes = append(t.Notes, "pings when idle for a third of the session; from 3.4.6 at least every 10 s", "never declares expiry itself: only a server's answer does")
	case "java-3.9":
		t.Ping = min(t.Ping, 10000)
		t.ClientSays = t.Negotiated * 4 / 3
		t.Notes = append(t.Notes, "from 3.9.3 the client declares expiry itself at 4/3 of the session", "pings at least every 10 s")
	case "go":
		t.Ping, t.Read = ms(zk.PingInterval(n)), ms(zk.PingInterval(n)+zk.AnswerLimit(n))
		t.Left = t.Negotiated - t.Read
		budget := n - zk.PingInterval(n) - zk.AnswerLimit(n) - zk.SafetyMargin(n)
		t.Connect = ms(zk.AttemptLimit(budget, ensemble, 0, n))
		t.Fit = ensemble
		t.Patience = t.Read + int64(ensemble)*t.Connect
		t.FitConnect = t.Connect
		t.Notes = append(t.Notes, "this project's client divides what is left of the session over the servers not tried yet, so every server gets its turn before expiry")
	default:
		return SessionTable{}, fmt.Errorf("client %q: want java-3.4, java-3.9 or go", client)
	}
	if t.Clamped {
		t.Notes = append(t.Notes, fmt.Sprintf("asked for %d, granted %d: set maxSessionTimeout in zoo.cfg to get more", requested, t.Negotiated))
	}
	if client != "go" {
		t.Notes = append(t.Notes, fmt.Sprintf("a session of any length leaves room for floor(%d/3) = %d whole attempts at unreachable servers: a longer session buys no more", ensemble, t.Fit))
	}
	return t, nil
}

package console

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
)

// The sampler's bounds. A second of a series is 20 bytes, so all of them take
// 600 KB at most.
const (
	seconds    = 300 // remembered
	window     = 10  // seconds that the summaries are about
	maxServers = 64
	maxMethods = 40
	tickEvery  = 500 * time.Millisecond
	// visitAtOnce is how many events are looked at while calls wait for the
	// log: some 20 us.
	visitAtOnce = 256
	// others takes what is beyond the bounds.
	others = "(others)"
)

// sampler keeps the rates and latencies of the last minutes. Calls are counted
// by the log's counters, exactly; latencies are taken from the events that the
// log remembers when the sampler looks: all of them up to some 16,000 calls a
// second, then the newest of each half second.
type sampler struct {
	log *eventlog.Log

	life   sync.Mutex // guards the next three
	cancel context.CancelFunc
	closed bool
	wg     sync.WaitGroup

	mu      sync.Mutex // guards what follows
	began   bool
	second  int64 // now, in seconds since 1970
	since   uint64
	lost    [window]bool
	before  map[eventlog.CounterKey]uint64
	total   *series
	servers map[string]*series
	methods map[string]*series
}

// series is one line of a chart.
type series struct {
	name   string
	calls  uint64
	points [seconds]point
	// recent holds the latencies of the last seconds, the present one included.
	recent [window]histogram
}

type point struct {
	calls, failed uint32
	p50, p99      float32 // ms; negative without a call that was looked at
}

func newSampler(log *eventlog.Log) *sampler {
	return &sampler{log: log, before: map[eventlog.CounterKey]uint64{}, total: newSeries(""), servers: map[string]*series{}, methods: map[string]*series{}}
}

// start begins sampling, once. What the log remembers is taken in, so that a
// page opened after something happened still shows it.
func (s *sampler) start() {
	s.life.Lock()
	defer s.life.Unlock()
	if s.cancel != nil || s.closed {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.tick(time.Now())
	s.wg.Go(func() {
		t := time.NewTicker(tickEvery)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-t.C:
				s.tick(now)
			}
		}
	})
}

func (s *sampler) close() {
	s.life.Lock()
	s.closed = true
	if s.cancel != nil {
		s.cancel()
	}
	s.life.Unlock()
	s.wg.Wait()
}

// tick takes in what has happened since the last one.
func (s *sampler) tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began {
		s.begin(now)
		return
	}
	s.advance(now.Unix())
	for {
		next, lost := s.log.Visit(s.since, visitAtOnce, func(e *eventlog.Event) {
			if e.Kind == eventlog.RPC {
				s.took(e)
			}
		})
		if lost > 0 {
			s.lost[s.second%window] = true
		}
		if next == s.since {
			break
		}
		s.since = next
	}
	for _, c := range s.log.Counters() {
		if n := c.Calls - s.before[c.CounterKey]; n > 0 {
			s.before[c.CounterKey] = c.Calls
			s.count(c.Server, c.Method, n, c.Outcome != eventlog.OK && c.Method != "")
		}
	}
}

// begin takes in the log's memory, each call in the second in which it ended.
func (s *sampler) begin(now time.Time) {
	s.began, s.second = true, now.Unix()-seconds
	for {
		next, _ := s.log.Visit(s.since, visitAtOnce, func(e *eventlog.Event) {
			if e.Kind != eventlog.RPC {
				return
			}
			// Calls are recorded as they end, so seconds only go forward; a
			// clock that was set back is not followed.
			s.advance(min(e.Time.Add(e.Latency).Unix(), now.Unix()))
			s.took(e)
			s.count(e.Server, e.Method, 1, e.Outcome != eventlog.OK)
		})
		if next == s.since {
			break
		}
		s.since = next
	}
	s.advance(now.Unix())
	// The sums are known from the beginning on.
	for x := range s.all() {
		x.calls = 0
	}
	for _, c := range s.log.Counters() {
		s.before[c.CounterKey] = c.Calls
		for _, x := range s.concerned(c.Server, c.Method) {
			x.calls += c.Calls
		}
	}
}

// advance goes on to a later second, which begins empty.
func (s *sampler) advance(to int64) {
	for ; s.second < to; s.second++ {
		if to-s.second > seconds {
			s.second = to - seconds
		}
		s.settle()
		next := s.second + 1
		s.lost[next%window] = false
		for x := range s.all() {
			x.points[next%seconds] = point{p50: -1, p99: -1}
			x.recent[next%window] = histogram{}
		}
	}
}

// settle computes the quantiles of the present second.
func (s *sampler) settle() {
	for x := range s.all() {
		p, h := &x.points[s.second%seconds], &x.recent[s.second%window]
		p.p50, p.p99 = float32(h.quantile(0.50)), float32(h.quantile(0.99))
	}
}

func (s *sampler) all() func(yield func(*series) bool) {
	return func(yield func(*series) bool) {
		if !yield(s.total) {
			return
		}
		for _, m := range []map[string]*series{s.servers, s.methods} {
			for _, x := range m {
				if !yield(x) {
					return
				}
			}
		}
	}
}

func of(m map[string]*series, name string, most int) *series {
	if x := m[name]; x != nil {
		return x
	}
	if len(m) >= most-1 && name != others {
		return of(m, others, most)
	}
	x := newSeries(name)
	m[name] = x
	return x
}

func newSeries(name string) *series {
	x := &series{name: name}
	for i := range x.points {
		x.points[i] = point{p50: -1, p99: -1}
	}
	return x
}

func (s *sampler) took(e *eventlog.Event) {
	i, b := s.second%window, bucket(e.Latency)
	s.total.recent[i][b]++
	of(s.servers, e.Server, maxServers).recent[i][b]++
	of(s.methods, e.Method, maxMethods).recent[i][b]++
}

// concerned gives the series that a call belongs to. The counter of what the
// log has no room for names neither server nor method.
func (s *sampler) concerned(server, method string) [3]*series {
	if server == "" {
		server, method = others, others
	}
	return [3]*series{s.total, of(s.servers, server, maxServers), of(s.methods, method, maxMethods)}
}

func (s *sampler) count(server, method string, n uint64, failed bool) {
	for _, x := range s.concerned(server, method) {
		p := &x.points[s.second%seconds]
		x.calls += n
		p.calls = add32(p.calls, n)
		if failed {
			p.failed = add32(p.failed, n)
		}
	}
}

func add32(a uint32, n uint64) uint32 { return uint32(min(uint64(a)+n, math.MaxUint32)) }

// histogram counts latencies in buckets whose bounds grow by a quarter of a
// power of two: a quantile is right within 10 %. From 1 us to 67 s.
type histogram [26 * perOctave]uint32

const perOctave = 4

// bucket is where a latency is counted.
func bucket(d time.Duration) int {
	us := max(float64(d)/float64(time.Microsecond), 1)
	return min(int(math.Log2(us)*perOctave), len(histogram{})-1)
}

// quantile gives a latency in ms that the share q of the calls did not exceed;
// -1 if there are none.
func (h *histogram) quantile(q float64) float64 {
	var n, sum uint64
	for _, c := range h {
		n += uint64(c)
	}
	if n == 0 {
		return -1
	}
	rank := uint64(math.Ceil(q * float64(n)))
	for i, c := range h {
		if sum += uint64(c); sum >= rank {
			return math.Exp2((float64(i)+0.5)/perOctave) / 1000 // the bucket's middle
		}
	}
	return -1
}

// Rates is the answer of GET /console/rates. Lists have one entry a second,
// oldest first; the last one is for the second before Now.
type Rates struct {
	// Now is the present second, since 1970, which is not over and in no list.
	Now int64 `json:"now"`
	// Enabled says whether the event log is on: without it there are no rates.
	Enabled bool `json:"enabled"`
	// Sampled says that of the last seconds not every call's latency is known.
	Sampled bool `json:"sampled"`
	// Window is how many seconds the summaries are about.
	Window  int    `json:"window"`
	Total   Line   `json:"total"`
	Servers []Line `json:"servers"`
	Methods []Line `json:"methods"`
}

// Line is one server, one method, or all of them. Latencies are in ms; -1 means
// that there was no call.
type Line struct {
	Name  string `json:"name"`
	Calls uint64 `json:"calls"` // since the cluster began
	// Of the last Window seconds.
	PerSecond    float64 `json:"perSecond"`
	FailedSecond float64 `json:"failedPerSecond"`
	P50          float64 `json:"p50"`
	P99          float64 `json:"p99"`
	// By the second.
	Rate   []uint32  `json:"rate"`
	Failed []uint32  `json:"failed"`
	P50s   []float64 `json:"p50s"`
	P99s   []float64 `json:"p99s"`
}

func (k *Console) getRates(r *http.Request) (any, error) {
	since, err := number(r, "since", 0, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	return k.rates.rates(time.Now(), int64(since)), nil
}

// rates gives the seconds from since on.
func (s *sampler) rates(now time.Time, since int64) Rates {
	s.tick(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	from := max(since, s.second-seconds+1)
	out := Rates{Now: s.second, Enabled: s.log.Enabled(), Window: window - 1, Total: s.line(s.total, from), Servers: s.lines(s.servers, from), Methods: s.lines(s.methods, from)}
	for i, lost := range s.lost {
		out.Sampled = out.Sampled || lost && int64(i) != s.second%window
	}
	return out
}

func (s *sampler) lines(m map[string]*series, from int64) []Line {
	out := make([]Line, 0, len(m))
	for _, x := range m {
		out = append(out, s.line(x, from))
	}
	slices.SortFunc(out, func(a, b Line) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name)) })
	return out
}

func (s *sampler) line(x *series, from int64) Line {
	l := Line{Name: x.name, Calls: x.calls, Rate: []uint32{}, Failed: []uint32{}, P50s: []float64{}, P99s: []float64{}}
	for at := from; at < s.second; at++ {
		p := x.points[at%seconds]
		l.Rate, l.Failed = append(l.Rate, p.calls), append(l.Failed, p.failed)
		l.P50s, l.P99s = append(l.P50s, round(float64(p.p50))), append(l.P99s, round(float64(p.p99)))
	}
	var h histogram
	for at := s.second - window + 1; at < s.second; at++ {
		for i, c := range x.recent[at%window] {
			h[i] += c
		}
		l.PerSecond += float64(x.points[at%seconds].calls) / (window - 1)
		l.FailedSecond += float64(x.points[at%seconds].failed) / (window - 1)
	}
	l.PerSecond, l.FailedSecond = round(l.PerSecond), round(l.FailedSecond)
	l.P50, l.P99 = round(h.quantile(0.50)), round(h.quantile(0.99))
	return l
}

// round keeps three digits: more is noise, and text to send.
func round(v float64) float64 {
	if v <= 0 {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	if unit >= 1 {
		return math.Round(v/unit) * unit
	}
	inverse := math.Round(1 / unit)
	return math.Round(v*inverse) / inverse
}

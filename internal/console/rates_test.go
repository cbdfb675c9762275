package console

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
)

func call(server, method string, latency time.Duration, outcome string, at time.Time) *eventlog.Event {
	return &eventlog.Event{Kind: eventlog.RPC, Time: at.Add(-latency), Server: server, Service: "ClientService", Method: method, Latency: latency, Outcome: outcome}
}

func last(l []uint32, n int) []uint32 { return l[len(l)-n:] }

func TestSampler(t *testing.T) {
	log := eventlog.New(eventlog.Options{Capacity: 1024})
	s := newSampler(log)
	now := time.Unix(1_000_000, 500e6)
	// The log's memory: 3 calls two seconds ago, one of them failed.
	for i, outcome := range []string{"ok", "IOException", "ok"} {
		log.Record(call("s:1", "Get", time.Duration(i+1)*time.Millisecond, outcome, now.Add(-2*time.Second)))
	}
	s.tick(now)
	r := s.rates(now, 0)
	if r.Now != 1_000_000 || len(r.Total.Rate) != seconds-1 || !slices.Equal(last(r.Total.Rate, 3), []uint32{0, 3, 0}) || !slices.Equal(last(r.Total.Failed, 3), []uint32{0, 1, 0}) || r.Sampled {
		t.Errorf("%+v", r.Total)
	}
	if p := r.Total.P50s[len(r.Total.P50s)-2]; math.Abs(p-2)/2 > 0.2 {
		t.Errorf("p50 %v of 1, 2 and 3 ms", p)
	}
	if p := r.Total.P50s[len(r.Total.P50s)-1]; p != -1 {
		t.Errorf("p50 %v of no calls", p)
	}

	// Live: more calls than the log remembers are counted all the same, and
	// said to be sampled.
	for range 5000 {
		log.Record(call("s:2", "Mutate", 100*time.Microsecond, "ok", now))
	}
	now = now.Add(time.Second)
	s.tick(now)
	now = now.Add(time.Second)
	r = s.rates(now, 1_000_001)
	if len(r.Total.Rate) != 1 || r.Total.Rate[0] != 5000 || !r.Sampled || r.Total.Calls != 5003 {
		t.Errorf("%+v, sampled %t", r.Total, r.Sampled)
	}
	if len(r.Servers) != 2 || r.Servers[0].Name != "s:2" || r.Servers[0].Calls != 5000 || len(r.Methods) != 2 || r.Methods[1].Failed[0] != 0 {
		t.Errorf("%+v", r.Servers)
	}
	if l := r.Servers[0]; math.Abs(l.P99-0.1)/0.1 > 0.2 || l.PerSecond != round(5000.0/(window-1)) {
		t.Errorf("p99 %v, %v a second", l.P99, l.PerSecond)
	}

	// After a pause longer than its memory, nothing is left to show.
	now = now.Add(time.Hour)
	r = s.rates(now, 0)
	if len(r.Total.Rate) != seconds-1 || slices.Max(r.Total.Rate) != 0 || r.Total.PerSecond != 0 || r.Total.P99 != -1 || r.Sampled {
		t.Errorf("an hour later: %+v", r.Total)
	}
}

func TestSamplerIsBounded(t *testing.T) {
	log := eventlog.New(eventlog.Options{})
	s := newSampler(log)
	now := time.Unix(2_000_000, 0)
	s.tick(now)
	for i := range 500 {
		log.Record(call(fmt.Sprint("s:", i), fmt.Sprint("Method", i), time.Millisecond, "ok", now))
	}
	log.Cluster(eventlog.Event{Method: "move"}) // no call
	s.tick(now)
	r := s.rates(now.Add(time.Second), 0)
	if len(r.Servers) != maxServers || len(r.Methods) != maxMethods || r.Total.Calls != 500 {
		t.Errorf("%d servers, %d methods, %d calls", len(r.Servers), len(r.Methods), r.Total.Calls)
	}
	if l := r.Servers[0]; l.Name != others || l.Calls != 500-maxServers+1 {
		t.Errorf("%s: %d", l.Name, l.Calls)
	}
}

// What the log has forgotten before the console was opened is in the sums.
func TestSamplerBeganLate(t *testing.T) {
	log := eventlog.New(eventlog.Options{Capacity: 16})
	now := time.Unix(4_000_000, 0)
	for range 1000 {
		log.Record(call("s:1", "Get", time.Millisecond, "ok", now.Add(-time.Second)))
	}
	s := newSampler(log)
	s.tick(now)
	r := s.rates(now, 0)
	if r.Total.Calls != 1000 || r.Servers[0].Calls != 1000 || r.Methods[0].Calls != 1000 || last(r.Total.Rate, 1)[0] != 16 {
		t.Errorf("%d, %d, %d calls, %d in the last second", r.Total.Calls, r.Servers[0].Calls, r.Methods[0].Calls, last(r.Total.Rate, 1)[0])
	}
}

func TestHistogram(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h histogram
	var all []float64
	for range 20_000 {
		d := time.Duration(math.Exp(rng.NormFloat64()*2+13)) * time.Nanosecond
		d = min(max(d, time.Microsecond), time.Minute)
		h[bucket(d)]++
		all = append(all, float64(d)/1e6)
	}
	slices.Sort(all)
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		want := all[int(math.Ceil(q*float64(len(all))))-1]
		if got := h.quantile(q); math.Abs(got-want)/want > 0.1 {
			t.Errorf("q %v: %v, want %v within 10 %%", q, got, want)
		}
	}
	var edge histogram
	edge[bucket(-time.Second)]++
	edge[bucket(24*time.Hour)]++
	if edge.quantile(0) < 0 || edge.quantile(1) < 50_000 {
		t.Errorf("%v %v", edge.quantile(0), edge.quantile(1))
	}
}

func TestRound(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, -1: -1, 1234: 1230, 0.012345: 0.0123, 99.96: 100, 5: 5} {
		if got := round(v); got != want {
			t.Errorf("%v: %v, want %v", v, got, want)
		}
	}
}

// What watching costs while calls come in: one tick with a full ring.
func BenchmarkTick(b *testing.B) {
	log := eventlog.New(eventlog.Options{})
	s := newSampler(log)
	now := time.Unix(3_000_000, 0)
	e := call("s:1", "Get", time.Millisecond, "ok", now)
	s.tick(now)
	for b.Loop() {
		b.StopTimer()
		for range eventlog.DefaultCapacity {
			log.Record(e)
		}
		b.StartTimer()
		now = now.Add(tickEvery)
		s.tick(now)
	}
}

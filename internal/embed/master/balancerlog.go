package master

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// keptBalances is how many decisions and rejections are kept, each
// (hbase.master.balancer.decision.queue.size).
const keptBalances = 250

// The cost function of HBase's balancer that says what ours goes by, the number
// of regions of the servers, with its weight, and the cost from which on there is
// something to do.
const (
	skewFunction = "RegionCountSkewCostFunction"
	skewWeight   = 500.0
	skewLeast    = 0.025
)

// balancerLog is what the balancer decided to do, and not to do. The zero value
// is ready; safe for concurrent use.
type balancerLog struct {
	mu        sync.Mutex
	decisions []*pb.BalancerDecision // oldest first
	rejected  []*pb.BalancerRejection
}

func keep[T any](list []T, x T) []T {
	if len(list) >= keptBalances {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, x)
}

// noteBalance keeps what was planned for a group. A group of one server, or
// without regions, is none to be balanced.
func (m *Master) noteBalance(s *catalog.State, group string, plan []transfer) {
	counts := map[meta.ServerName]int{}
	for _, rs := range m.cfg.Servers.Live() {
		if rs.Alive() && s.GroupOfServer(rs.Name().Address()) == group {
			counts[rs.Name()] = s.Held(rs.Name())
		}
	}
	if len(counts) < 2 {
		return
	}
	before := skew(counts)
	l := &m.balanced
	if len(plan) == 0 {
		r := &pb.BalancerRejection{
			Reason:       new(fmt.Sprintf("[(cost1*multiplier1)+(cost2*multiplier2)+...+(costn*multipliern)]/sumMultiplier = %s <= minCostNeedBalance(%s)", javaDouble(before), javaDouble(skewLeast))),
			CostFuncInfo: []string{"org.apache.hadoop.hbase.master.balancer." + skewFunction + " cost:" + javaDouble(before) + " multiplier:" + javaDouble(skewWeight)},
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.rejected = keep(l.rejected, r)
		return
	}
	d := &pb.BalancerDecision{InitialFunctionCosts: new(skewText(before)), InitTotalCost: new(before), ComputedSteps: new(uint64(len(plan)))}
	for _, t := range plan {
		r := s.Region(t.region)
		if r == nil {
			continue
		}
		counts[r.Server]--
		counts[t.to]++
		d.RegionPlans = append(d.RegionPlans, fmt.Sprintf("table: %s , region: %s , source: %s , destination: %s", r.Info.Table, &r.Info, r.Server, t.to))
	}
	after := skew(counts)
	d.FinalFunctionCosts, d.ComputedTotalCost = new(skewText(after)), new(after)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decisions = keep(l.decisions, d)
}

// skewText says what the cost function finds, in HBase's words.
func skewText(cost float64) string {
	need := ""
	if cost >= skewLeast {
		need = ", need balance"
	}
	return skewFunction + " : (multiplier=" + javaDouble(skewWeight) + ", imbalance=" + javaDouble(cost) + need + "); "
}

// javaDouble writes a number between 0.001 and 10,000,000, or 0, as Java does.
func javaDouble(x float64) string {
	if x == math.Trunc(x) {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprint(x)
}

// skew is how uneven the servers are, from 0, as even as can be, to 1, all
// regions on one: the deviation from the mean, scaled between these two.
func skew(counts map[meta.ServerName]int) float64 {
	servers, total := float64(len(counts)), 0.0
	for _, n := range counts {
		total += float64(n)
	}
	mean := total / servers
	sum := 0.0
	for _, n := range counts {
		sum += (float64(n) - mean) * (float64(n) - mean)
	}
	high := total - math.Floor(mean)*servers
	least := math.Sqrt(high*(math.Ceil(mean)-mean)*(math.Ceil(mean)-mean) + (servers-high)*(mean-math.Floor(mean))*(mean-math.Floor(mean)))
	most := math.Sqrt((total-mean)*(total-mean) + (servers-1)*mean*mean)
	if most <= least {
		return 0
	}
	return max(0, min(1, (math.Sqrt(sum)-least)/(most-least)))
}

// newest gives at most limit of a list's elements, the newest first; all if the
// limit is 0.
func newest[T any](list []T, limit uint32) []T {
	out := slices.Clone(list)
	slices.Reverse(out)
	if limit > 0 && int(limit) < len(out) {
		out = out[:limit]
	}
	return out
}

// balancerDecisions and balancerRejections answer requests of GetLogEntries.
func (m *Master) balancerDecisions(q *pb.BalancerDecisionsRequest) *pb.BalancerDecisionsResponse {
	l := &m.balanced
	l.mu.Lock()
	defer l.mu.Unlock()
	return &pb.BalancerDecisionsResponse{BalancerDecision: newest(l.decisions, q.GetLimit())}
}

func (m *Master) balancerRejections(q *pb.BalancerRejectionsRequest) *pb.BalancerRejectionsResponse {
	l := &m.balanced
	l.mu.Lock()
	defer l.mu.Unlock()
	return &pb.BalancerRejectionsResponse{BalancerRejection: newest(l.rejected, q.GetLimit())}
}

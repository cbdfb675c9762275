package admin

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// The Java classes that GetLogEntries goes by.
const (
	slowLogRequestClass    = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$SlowLogResponseRequest"
	decisionsRequestClass  = "org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$BalancerDecisionsRequest"
	rejectionsRequestClass = "org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$BalancerRejectionsRequest"
)

// SlowCall is a call that was slow or whose answer was large, as a region
// server remembers it (hbase.regionserver.slowlog.buffer.enabled).
type SlowCall struct {
	Server ServerName
	Start  time.Time
	// Processing and Queued are in whole milliseconds.
	Processing, Queued time.Duration
	ResponseBytes      int64
	// Client is host:port.
	Client, User string
	ServerClass  string
	Method       string
	// Details and Param are Java's texts of the request.
	Details, Param string
	Region         string
	// Of a Multi: how many of each.
	Gets, Mutations, Services int
	// Large: it is in the log of large answers.
	Large bool
	// BlockBytesRead and FileRead are told by HBase 2.6 and later.
	BlockBytesRead int64
	FileRead       time.Duration
	// ConnectionAttributes and RequestAttributes are those the client sent, HBase
	// 2.6 and later, in their order.
	ConnectionAttributes, RequestAttributes []Attribute
}

// Attribute is a name with a value of bytes.
type Attribute struct {
	Name  string
	Value []byte
}

// SlowLogQuery chooses calls of the slow or the large log. The zero value gives
// the ten latest slow calls of every live server.
type SlowLogQuery struct {
	// Servers to ask; none means all live ones.
	Servers []ServerName
	// Large asks for the log of large answers instead.
	Large bool
	// Region (full name), Table, Client (host or host:port) and User filter if
	// set; a call passes if one of those set holds, or with MatchAll if all do.
	Region, Table, Client, User string
	MatchAll                    bool
	// Limit is how many calls a server gives at most; 0 means 10.
	Limit int
}

// SlowLog gives the calls that region servers remember as slow or large, latest
// first. A server that does not keep such a log gives none. HBase 2.3 and
// later.
func (a *Admin) SlowLog(ctx context.Context, q SlowLogQuery) ([]SlowCall, error) {
	const op = "slow log"
	if q.Limit < 0 {
		return nil, invalid(op, "limit", "is negative")
	}
	req := &pb.SlowLogResponseRequest{
		Limit: new(uint32(cmp.Or(q.Limit, 10))), LogType: pb.SlowLogResponseRequest_SLOW_LOG.Enum(),
		FilterByOperator: pb.SlowLogResponseRequest_OR.Enum(),
	}
	if q.Large {
		req.LogType = pb.SlowLogResponseRequest_LARGE_LOG.Enum()
	}
	if q.MatchAll {
		req.FilterByOperator = pb.SlowLogResponseRequest_AND.Enum()
	}
	for _, f := range []struct {
		value string
		to    **string
	}{{q.Region, &req.RegionName}, {q.Table, &req.TableName}, {q.Client, &req.ClientAddress}, {q.User, &req.UserName}} {
		if f.value != "" {
			*f.to = &f.value
		}
	}
	var mu sync.Mutex
	var out []SlowCall
	err := a.eachServer(ctx, op, q.Servers, func(ctx context.Context, s ServerName) error {
		resp, err := a.slowLog(ctx, op, s, req, q.Large)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, p := range resp.GetSlowLogPayloads() {
			out = append(out, slowCall(s, p))
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b SlowCall) int { return b.Start.Compare(a.Start) })
	return out, err
}

func (a *Admin) slowLog(ctx context.Context, op string, s ServerName, req *pb.SlowLogResponseRequest, large bool) (*pb.SlowLogResponses, error) {
	resp := new(pb.SlowLogResponses)
	err := a.logEntries(slowLogRequestClass, req, resp, func(param, result *pb.LogEntry) error {
		return a.server(ctx, op, s, "GetLogEntries", &pb.LogRequest{LogClassName: param.LogClassName, LogMessage: param.LogMessage}, result, session.Safe)
	})
	if err == nil || !fault.UnknownMethod(err) {
		return resp, err
	}
	// HBase 2.3 has a method for each.
	method := "GetSlowLogResponses"
	if large {
		method = "GetLargeLogResponses"
	}
	err = a.server(ctx, op, s, method, req, resp, session.Safe)
	return resp, fault.Since(err, method, "2.3 and later")
}

// logEntries wraps a request and unwraps the answer, as GetLogEntries wants
// them: a class name and a message in bytes.
func (a *Admin) logEntries(class string, req interface{ MarshalVT() ([]byte, error) }, resp wire.Unmarshaler, call func(param, result *pb.LogEntry) error) error {
	body, err := req.MarshalVT()
	if err != nil {
		return err
	}
	var out pb.LogEntry
	if err := call(&pb.LogEntry{LogClassName: &class, LogMessage: body}, &out); err != nil {
		return err
	}
	if err := resp.UnmarshalVT(out.GetLogMessage()); err != nil {
		return &fault.Unreadable{Err: err}
	}
	return nil
}

func slowCall(s ServerName, p *pb.SlowLogPayload) SlowCall {
	return SlowCall{
		Server: s, Start: time.UnixMilli(p.GetStartTime()),
		Processing: time.Duration(p.GetProcessingTime()) * time.Millisecond, Queued: time.Duration(p.GetQueueTime()) * time.Millisecond,
		ResponseBytes: p.GetResponseSize(), Client: p.GetClientAddress(), User: p.GetUserName(), ServerClass: p.GetServerClass(),
		Method: p.GetMethodName(), Details: p.GetCallDetails(), Param: p.GetParam(), Region: p.GetRegionName(),
		Gets: int(p.GetMultiGets()), Mutations: int(p.GetMultiMutations()), Services: int(p.GetMultiServiceCalls()),
		Large:          p.GetType() == pb.SlowLogPayload_LARGE_LOG,
		BlockBytesRead: p.GetBlockBytesScanned(), FileRead: time.Duration(p.GetFsReadTime()) * time.Millisecond,
		ConnectionAttributes: attributesOf(p.GetConnectionAttribute()), RequestAttributes: attributesOf(p.GetRequestAttribute()),
	}
}

func attributesOf(ps []*pb.NameBytesPair) []Attribute {
	var out []Attribute
	for _, p := range ps {
		out = append(out, Attribute{Name: p.GetName(), Value: p.GetValue()})
	}
	return out
}

// ClearSlowLog empties the logs of slow and large calls of region servers, of
// all live ones if none are given, and says where there was one to empty. HBase
// 2.3 and later.
func (a *Admin) ClearSlowLog(ctx context.Context, servers ...ServerName) (map[ServerName]bool, error) {
	const op = "clear slow log"
	var mu sync.Mutex
	cleared := map[ServerName]bool{}
	err := a.eachServer(ctx, op, servers, func(ctx context.Context, s ServerName) error {
		var resp pb.ClearSlowLogResponses
		if err := a.server(ctx, op, s, "ClearSlowLogsResponses", &pb.ClearSlowLogResponseRequest{}, &resp, session.Safe); err != nil {
			return fault.Since(err, "ClearSlowLogsResponses", "2.3 and later")
		}
		mu.Lock()
		defer mu.Unlock()
		cleared[s] = resp.GetIsCleaned()
		return nil
	})
	return cleared, err
}

// BalancerDecision is a plan of the balancer and the costs it went by.
type BalancerDecision struct {
	// InitialCosts and FinalCosts are the cost functions' texts before and after.
	InitialCosts, FinalCosts string
	InitialTotal, FinalTotal float64
	Steps                    uint64
	// Plans are the moves, as text.
	Plans []string
}

// BalancerDecisions gives the balancer's latest plans, latest first, at most
// limit (0: 250), if the master keeps them
// (hbase.master.balancer.decision.buffer.enabled). HBase 2.4 and later.
func (a *Admin) BalancerDecisions(ctx context.Context, limit int) ([]BalancerDecision, error) {
	const op = "balancer decisions"
	var resp pb.BalancerDecisionsResponse
	err := a.masterLog(ctx, op, decisionsRequestClass, limit, func(n *uint32) interface{ MarshalVT() ([]byte, error) } {
		return &pb.BalancerDecisionsRequest{Limit: n}
	}, &resp)
	var out []BalancerDecision
	for _, p := range resp.GetBalancerDecision() {
		out = append(out, BalancerDecision{
			InitialCosts: p.GetInitialFunctionCosts(), FinalCosts: p.GetFinalFunctionCosts(), InitialTotal: p.GetInitTotalCost(),
			FinalTotal: p.GetComputedTotalCost(), Steps: p.GetComputedSteps(), Plans: p.GetRegionPlans(),
		})
	}
	return out, err
}

// BalancerRejection is a time when the balancer saw no need to do anything.
type BalancerRejection struct {
	Reason string
	Costs  []string
}

// BalancerRejections gives the latest times the balancer found nothing to do,
// latest first, at most limit (0: 250), if the master keeps them
// (hbase.master.balancer.rejection.buffer.enabled). HBase 2.4 and later.
func (a *Admin) BalancerRejections(ctx context.Context, limit int) ([]BalancerRejection, error) {
	const op = "balancer rejections"
	var resp pb.BalancerRejectionsResponse
	err := a.masterLog(ctx, op, rejectionsRequestClass, limit, func(n *uint32) interface{ MarshalVT() ([]byte, error) } {
		return &pb.BalancerRejectionsRequest{Limit: n}
	}, &resp)
	var out []BalancerRejection
	for _, p := range resp.GetBalancerRejection() {
		out = append(out, BalancerRejection{Reason: p.GetReason(), Costs: p.GetCostFuncInfo()})
	}
	return out, err
}

func (a *Admin) masterLog(ctx context.Context, op, class string, limit int, req func(*uint32) interface{ MarshalVT() ([]byte, error) }, resp wire.Unmarshaler) error {
	if limit < 0 {
		return invalid(op, "limit", "is negative")
	}
	err := a.logEntries(class, req(new(uint32(cmp.Or(limit, 250)))), resp, func(param, result *pb.LogEntry) error {
		return a.master(ctx, op, "GetLogEntries", &pb.LogRequest{LogClassName: param.LogClassName, LogMessage: param.LogMessage}, result, session.Safe)
	})
	return fault.Wrap(op, "", fault.Since(err, "GetLogEntries", "2.4 and later"))
}

package hbase

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// ServiceCall is one call of a coprocessor's service. Package hbase/endpoint
// calls services region by region over a range of rows, and has clients for
// HBase's own.
type ServiceCall struct {
	// Service and Method are the names in the service's .proto file. HBase's
	// own services go without their package: "AggregateService", "GetSum";
	// others with it.
	Service, Method string
	// Request is the request message, serialized.
	Request []byte
	// Unrepeatable says that running the call twice does harm. It is then not
	// sent again once it may have run, and [ErrUnknownOutcome] says so.
	Unrepeatable bool
	// Timeout bounds one attempt. Default 0: [Config.OperationTimeout], since a
	// service may work for long; that a server has died or frozen is noticed
	// much sooner. An attempt never gets more than what is left of the call.
	Timeout time.Duration
	// Priority of the request in the server's queues. Default 0: none, or 200
	// on system tables.
	Priority uint32
}

// ServiceAnswer is what a coprocessor's service answered.
type ServiceAnswer struct {
	// Region is the region that answered; zero for services of servers and of
	// the master.
	Region Region
	// Name is the Java class of the answer, where the server gives it.
	Name string
	// Value is the answer message, serialized. It is the caller's.
	Value []byte
}

// CallService calls a coprocessor's service in the region that holds row (Java:
// Table.coprocessorService with one row). Like every call it finds the region
// again when that has moved or split: the answer says which region it was.
func (t *Table) CallService(ctx context.Context, row []byte, c *ServiceCall) (*ServiceAnswer, error) {
	op, err := c.check()
	if err != nil {
		return nil, err
	}
	var spec regionSpec
	req := pb.CoprocessorServiceRequest{Region: &spec.spec, Call: c.message(row)}
	var resp pb.CoprocessorServiceResponse
	ans, err := t.c.core.CallRegion(ctx, &session.RegionCall{
		Table: t.name, Row: row, Method: "ExecService", Op: op,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			spec.set(region)
			return &req, nil
		},
		Result: &resp, Idempotency: c.idempotency(), Priority: c.Priority, Timeout: c.timeout(t.c),
	})
	if err != nil {
		return nil, t.wrap(op, err)
	}
	a := answerOf(&resp)
	a.Region = regionOf(ans.Route)
	return a, nil
}

// CallServerService calls a coprocessor's service of one region server (Java:
// AsyncAdmin.coprocessorService with a server). A server that is down is an
// error at once.
func (c *Client) CallServerService(ctx context.Context, server ServerName, s *ServiceCall) (*ServiceAnswer, error) {
	return c.serverService(s, server.String(), "ExecRegionServerService", func(call *session.ServerCall) error {
		call.Service = session.ClientService
		_, err := c.core.CallServer(ctx, server, call)
		return err
	})
}

// CallMasterService calls a coprocessor's service of the active master (Java:
// Admin.coprocessorService).
func (c *Client) CallMasterService(ctx context.Context, s *ServiceCall) (*ServiceAnswer, error) {
	return c.serverService(s, "master", "ExecMasterService", func(call *session.ServerCall) error {
		_, err := c.core.CallMaster(ctx, call)
		return err
	})
}

func (c *Client) serverService(s *ServiceCall, object, method string, send func(*session.ServerCall) error) (*ServiceAnswer, error) {
	op, err := s.check()
	if err != nil {
		return nil, err
	}
	// Both fields are required by the message and mean nothing here.
	var spec regionSpec
	spec.set([]byte{})
	var resp pb.CoprocessorServiceResponse
	err = send(&session.ServerCall{
		Method: method, Op: op,
		Param:  &pb.CoprocessorServiceRequest{Region: &spec.spec, Call: s.message(nil)},
		Result: &resp, Idempotency: s.idempotency(), Priority: s.Priority, Timeout: s.timeout(c),
	})
	if err != nil {
		return nil, wrap(op, object, err)
	}
	return answerOf(&resp), nil
}

// RegionOf gives the region that holds row, as the client believes it to be; it
// asks hbase:meta only if it knows nothing. Who walks on from region to region
// says up to which row (ahead; nil: to the table's end), so that the regions in
// between are read in large pages.
func (t *Table) RegionOf(ctx context.Context, row, ahead []byte) (Region, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.c.cfg.OperationTimeout)
		defer cancel()
	}
	r, err := t.c.core.Routes().LocateAhead(ctx, t.name, row, ahead)
	if err != nil {
		return Region{}, t.wrap("locate", err)
	}
	return regionOf(r), nil
}

// regionOf gives a route's region with keys of its own; zero for no route.
func regionOf(r *route.Route) Region {
	if r == nil {
		return Region{}
	}
	reg := r.Region()
	reg.Start, reg.End = slices.Clone(reg.Start), slices.Clone(reg.End)
	return reg
}

// MarshalScan gives a Scan as coprocessor services take it: HBase's message
// hbase.pb.Scan, serialized. Fields that concern only the client (Limit,
// Prefetch, Metrics) do not travel.
func MarshalScan(s *Scan) ([]byte, error) {
	if s == nil {
		s = &Scan{}
	}
	if err := checkScan(s); err != nil {
		return nil, err
	}
	p, err := pbScan(s, s.MaxResultSize)
	if err != nil {
		return nil, err
	}
	if s.MaxResultSize == 0 {
		p.MaxResultSize = nil
	}
	if len(s.Start) > 0 {
		p.StartRow = s.Start
	}
	if len(s.Stop) > 0 {
		p.StopRow = s.Stop
	}
	p.IncludeStartRow, p.IncludeStopRow = new(!s.ExcludeStart), new(s.IncludeStop)
	return p.MarshalVT()
}

// check refuses a call that names nothing, and gives its name for errors and
// traces.
func (c *ServiceCall) check() (op string, err error) {
	switch {
	case c == nil:
		return "", invalid("call service", "call", "is nil")
	case c.Service == "" || c.Method == "":
		return "", invalid("call service", strconv.Quote(c.Service+"."+c.Method), "lacks service or method")
	case c.Timeout < 0:
		return "", invalid("call service", "timeout", c.Timeout.String()+" is negative")
	}
	return c.Service + "." + c.Method, nil
}

func (c *ServiceCall) message(row []byte) *pb.CoprocessorServiceCall {
	return &pb.CoprocessorServiceCall{Row: nonNil(row), ServiceName: &c.Service, MethodName: &c.Method, Request: nonNil(c.Request)}
}

func (c *ServiceCall) idempotency() session.Idempotency {
	if c.Unrepeatable {
		return session.Unsafe
	}
	return session.Safe
}

func (c *ServiceCall) timeout(cl *Client) time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return cl.cfg.OperationTimeout
}

func answerOf(resp *pb.CoprocessorServiceResponse) *ServiceAnswer {
	return &ServiceAnswer{Name: resp.GetValue().GetName(), Value: resp.GetValue().GetValue()}
}

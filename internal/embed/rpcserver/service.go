package rpcserver

import (
	"context"
	"fmt"
	"net"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Service is the set of methods behind one service name of the connection
// header. Methods are added before the server starts and never after.
type Service struct {
	name    string
	methods map[string]*method
}

// NewService makes a service without methods; calls to what it lacks are
// answered as HBase does (DoNotRetryIOException naming the method).
func NewService(name string) *Service {
	return &Service{name: name, methods: make(map[string]*method)}
}

// Name is the service's name in connection headers.
func (s *Service) Name() string { return s.name }

// method is one RPC, with the types of its messages closed over.
type method struct {
	name   string
	inline bool
	brief  bool
	// decode reads the param into call.in.
	decode func(*Call) error
	// describe fills call.Target from call.in; may be nil.
	describe func(*Call)
	run      func(context.Context, *Call) (wire.Marshaler, error)
}

// Option refines a method.
type Option[P any] func(*method)

// Inline lets a lone call run on the connection's reading goroutine. For
// methods that normally end within some ten microseconds.
func Inline[P any](yes bool) Option[P] {
	return func(m *method) { m.inline = yes }
}

// Brief lets a call run on the connection's reading goroutine also when others
// have arrived behind it, and its answer leave with theirs: they cost fewer
// switches and writes, and each waits for those before it. For methods that
// normally end within some ten microseconds and do not wait for a disk to
// write.
func Brief[P any](yes bool) Option[P] {
	return func(m *method) { m.inline, m.brief = yes, yes }
}

// Describe tells, before the handler runs, what a call is about: f fills
// call.Target. It must be cheap; it is called only if chaos rules or the event
// log want to know. Without it, table and region are taken from the fields of
// those names.
func Describe[P any](f func(*Call, P)) Option[P] {
	return func(m *method) {
		m.describe = func(c *Call) { f(c, c.in.(P)) }
	}
}

// Handle adds a method: fn gets the decoded param and returns the answer, or an
// error (see ToRemote for how errors look to the client). The answer's cells go
// through Call.ReplyCells.
func Handle[M any, P interface {
	*M
	wire.Unmarshaler
}, R wire.Marshaler](s *Service, name string, fn func(context.Context, *Call, P) (R, error), options ...Option[P]) {
	m := &method{
		name:     name,
		describe: describeAny,
		decode: func(c *Call) error {
			in := P(new(M))
			if err := in.UnmarshalVT(c.Param); err != nil {
				return &wire.RemoteError{Class: classInvalidProtobuf, Message: err.Error()}
			}
			c.in = in
			return nil
		},
		run: func(ctx context.Context, c *Call) (wire.Marshaler, error) {
			out, err := fn(ctx, c, c.in.(P))
			if err != nil {
				return nil, err
			}
			return out, nil
		},
	}
	for _, o := range options {
		o(m)
	}
	s.methods[name] = m
}

// classInvalidProtobuf is what a Java server answers to a param it cannot
// parse; an IOException, so clients retry it.
const classInvalidProtobuf = "org.apache.hbase.thirdparty.com.google.protobuf.InvalidProtocolBufferException"

// Unsupported is the answer to what this server lacks, naming it.
func Unsupported(format string, args ...any) error {
	return wire.NewRemoteError(wire.ClassDoNotRetryIO, "java.lang.UnsupportedOperationException: "+fmt.Sprintf(format, args...))
}

// unknownMethod is HBase's answer to a method that the service lacks.
func (c *Conn) unknownMethod(name string) error {
	here := ""
	if a := c.nc.LocalAddr(); a != nil {
		here = a.String()
	}
	client, _, err := net.SplitHostPort(c.remote)
	if err != nil {
		client = c.remote
	}
	return wire.NewRemoteError(wire.ClassDoNotRetryIO,
		"/"+here+" is unable to read call parameter from client "+client+"; java.lang.UnsupportedOperationException: "+name)
}

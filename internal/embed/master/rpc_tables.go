package master

import (
	"context"
	"regexp"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// choose gives the tables whose whole name matches the regular expression, as
// HBase lists them: those of the default namespace also match with "default:"
// before their name; system tables only if asked for.
func (m *Master) choose(expr *string, namespace *string, system bool) ([]*catalog.Table, error) {
	s := m.state()
	if namespace != nil && *namespace != "" && s.Namespace(*namespace) == nil {
		return nil, namespaceNotFound(*namespace)
	}
	var re *regexp.Regexp
	if expr != nil && *expr != "" {
		var err error
		if re, err = regexp.Compile("^(?:" + *expr + ")$"); err != nil {
			return nil, retriable(wire.ClassIOException, "%s", "regular expression: "+err.Error())
		}
	}
	var out []*catalog.Table
	for t := range s.Tables() {
		if t.Name.IsSystem() && !system || namespace != nil && *namespace != "" && t.Name.Namespace != *namespace {
			continue
		}
		if re != nil && !re.MatchString(t.Name.String()) &&
			(t.Name.Namespace != meta.DefaultNamespace || !re.MatchString(meta.DefaultNamespace+":"+t.Name.Qualifier)) {
			continue
		}
		out = append(out, t)
	}
	return out, nil
}

func (m *Master) getTableDescriptors(_ context.Context, q *pb.GetTableDescriptorsRequest) (*pb.GetTableDescriptorsResponse, error) {
	r := &pb.GetTableDescriptorsResponse{}
	if len(q.GetTableNames()) > 0 {
		s := m.state()
		for _, n := range tablesOf(q.GetTableNames()) {
			if t := s.Table(n); t != nil {
				r.TableSchema = append(r.TableSchema, t.Schema)
			}
		}
		return r, nil
	}
	ts, err := m.choose(q.Regex, q.Namespace, q.GetIncludeSysTables())
	if err != nil {
		return nil, err
	}
	r.TableSchema = schemas(ts)
	return r, nil
}

func (m *Master) getTableNames(_ context.Context, q *pb.GetTableNamesRequest) (*pb.GetTableNamesResponse, error) {
	ts, err := m.choose(q.Regex, q.Namespace, q.GetIncludeSysTables())
	if err != nil {
		return nil, err
	}
	return &pb.GetTableNamesResponse{TableNames: names(ts)}, nil
}

func schemas(ts []*catalog.Table) (out []*pb.TableSchema) {
	for _, t := range ts {
		out = append(out, t.Schema)
	}
	return out
}

func names(ts []*catalog.Table) (out []*pb.TableName) {
	for _, t := range ts {
		out = append(out, t.Name.ToProto())
	}
	return out
}

func (m *Master) getTableState(_ context.Context, q *pb.GetTableStateRequest) (*pb.GetTableStateResponse, error) {
	n := meta.TableFromProto(q.GetTableName())
	t := m.state().Table(n)
	if t == nil {
		return nil, tableNotFound(n)
	}
	return &pb.GetTableStateResponse{TableState: &pb.TableState{State: t.State.Enum()}}, nil
}

func (m *Master) byState(enabled bool) (out []*catalog.Table) {
	want := pb.TableState_DISABLED
	if enabled {
		want = pb.TableState_ENABLED
	}
	for t := range m.state().Tables() {
		if t.State == want {
			out = append(out, t)
		}
	}
	return out
}

func (m *Master) listDescriptorsByState(_ context.Context, q *pb.ListTableDescriptorsByStateRequest) (*pb.ListTableDescriptorsByStateResponse, error) {
	return &pb.ListTableDescriptorsByStateResponse{TableSchema: schemas(m.byState(q.GetIsEnabled()))}, nil
}

func (m *Master) listNamesByState(_ context.Context, q *pb.ListTableNamesByStateRequest) (*pb.ListTableNamesByStateResponse, error) {
	return &pb.ListTableNamesByStateResponse{TableNames: names(m.byState(q.GetIsEnabled()))}, nil
}

func (m *Master) listDescriptorsByNamespace(_ context.Context, q *pb.ListTableDescriptorsByNamespaceRequest) (*pb.ListTableDescriptorsByNamespaceResponse, error) {
	ts, err := m.choose(nil, q.NamespaceName, true)
	if err != nil {
		return nil, err
	}
	return &pb.ListTableDescriptorsByNamespaceResponse{TableSchema: schemas(ts)}, nil
}

func (m *Master) listNamesByNamespace(_ context.Context, q *pb.ListTableNamesByNamespaceRequest) (*pb.ListTableNamesByNamespaceResponse, error) {
	ts, err := m.choose(nil, q.NamespaceName, true)
	if err != nil {
		return nil, err
	}
	return &pb.ListTableNamesByNamespaceResponse{TableName: names(ts)}, nil
}

// getSchemaAlterStatus is polled by 1.x clients after an alter, which here is
// over when its procedure is.
func (m *Master) getSchemaAlterStatus(_ context.Context, q *pb.GetSchemaAlterStatusRequest) (*pb.GetSchemaAlterStatusResponse, error) {
	n, s := meta.TableFromProto(q.GetTableName()), m.state()
	if s.Table(n) == nil {
		return nil, tableNotFound(n)
	}
	c := countStates(s, n)
	return &pb.GetSchemaAlterStatusResponse{YetToUpdateRegions: new(c.GetRegionsInTransition()), TotalRegions: new(c.GetTotalRegions())}, nil
}

// flush is a flush of all regions of a table; families nil means all.
func (m *Master) flush(ctx context.Context, n meta.TableName, families [][]byte) error {
	t := m.state().Table(n)
	switch {
	case t == nil:
		return tableNotFound(n)
	case t.State != pb.TableState_ENABLED:
		return tableNotEnabled(n)
	case t.Virtual():
		return nil
	}
	h, err := m.cfg.Tables.Handle(t)
	if err != nil {
		return err
	}
	return h.Flush(ctx, nil, nil, families)
}

func (m *Master) flushTable(ctx context.Context, q *pb.FlushTableRequest) (uint64, error) {
	n := meta.TableFromProto(q.GetTableName())
	return m.submit(ctx, "FlushTableProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		t := m.state().Table(n)
		if t == nil {
			return tableNotFound(n)
		}
		for _, f := range q.GetColumnFamily() {
			if catalog.FamilyOf(t.Schema, f) == nil {
				return refuse(wire.ClassNoSuchColumnFamily, "Column family %s does not exist in table %s", f, n)
			}
		}
		return m.flush(ctx, n, q.GetColumnFamily())
	})
}

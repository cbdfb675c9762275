package master

import (
	"context"
	"strconv"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Quotas of a namespace, kept in its configuration.
const (
	maxTablesKey  = "hbase.namespace.quota.maxtables"
	maxRegionsKey = "hbase.namespace.quota.maxregions"
)

func namespaceNotFound(name string) error { return refuse(wire.ClassNamespaceNotFound, "%s", name) }

// checkNamespace refuses a namespace's configuration that makes no sense.
func checkNamespace(s *catalog.State, n *catalog.Namespace) error {
	for _, key := range []string{maxTablesKey, maxRegionsKey} {
		if v := n.Setting(key); v != "" {
			if i, err := strconv.ParseInt(v, 10, 64); err != nil || i <= 0 {
				return refuse(wire.ClassDoNotRetryIO, "%s is %q: a number above 0 is needed", key, v)
			}
		}
	}
	if g := n.Setting(catalog.GroupAttribute); g != "" && !s.HasGroup(g) {
		return refuse(wire.ClassConstraint, "Region server group %s does not exist", g)
	}
	return nil
}

// checkNamespaceQuota refuses a table that would exceed its namespace's quota.
func (m *Master) checkNamespaceQuota(s *catalog.State, name meta.TableName, regions int) error {
	n := s.Namespace(name.Namespace)
	limit := func(key string) (int, bool) {
		i, err := strconv.Atoi(n.Setting(key))
		return i, err == nil
	}
	tables := 0
	for t := range s.Tables() {
		if t.Name.Namespace == name.Namespace {
			tables++
		}
	}
	if most, ok := limit(maxTablesKey); ok && tables >= most {
		return refuse(wire.ClassQuotaExceeded, "The table %s cannot be created as it would exceed maximum number of tables allowed  in the namespace.  The total number of tables permitted is %d", name, most)
	}
	if most, ok := limit(maxRegionsKey); ok {
		have := 0
		for range s.Select(meta.TableName{}, func(r *catalog.Region) bool {
			if r.Info.Table.Namespace == name.Namespace && !r.Parent() {
				have++
			}
			return false
		}) {
		}
		if have+regions > most {
			return refuse(wire.ClassQuotaExceeded, "The table %s is not allowed to have %d regions. The total number of regions permitted is only %d, while current region count is %d. This may be transient, please retry later if there are any ongoing split operations in the namespace.", name, regions, most, have)
		}
	}
	return nil
}

func namespaceOf(p *pb.NamespaceDescriptor, now int64) *catalog.Namespace {
	return &catalog.Namespace{Name: string(p.GetName()), Config: p.GetConfiguration(), Time: now}
}

func (m *Master) createNamespace(ctx context.Context, q *pb.CreateNamespaceRequest) (uint64, error) {
	name := string(q.GetNamespaceDescriptor().GetName())
	if err := catalog.CheckNamespaceName(name); err != nil {
		return 0, err
	}
	return m.submit(ctx, "CreateNamespaceProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		unlock, err := m.lockNamespace(ctx, name, true)
		if err != nil {
			return err
		}
		defer unlock()
		err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
			if tx.Namespace(name) != nil {
				return refuse(wire.ClassNamespaceExist, "Namespace %s already exists", name)
			}
			n := namespaceOf(q.GetNamespaceDescriptor(), tx.Now())
			if err := checkNamespace(&tx.State, n); err != nil {
				return err
			}
			tx.PutNamespace(n)
			return nil
		})
		if err == nil {
			prepared()
			m.event(eventlog.Event{Method: "create-namespace", Detail: name})
		}
		return err
	})
}

func (m *Master) modifyNamespace(ctx context.Context, q *pb.ModifyNamespaceRequest) (uint64, error) {
	name := string(q.GetNamespaceDescriptor().GetName())
	return m.submit(ctx, "ModifyNamespaceProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		unlock, err := m.lockNamespace(ctx, name, true)
		if err != nil {
			return err
		}
		var moved bool
		err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
			old := tx.Namespace(name)
			if old == nil {
				return namespaceNotFound(name)
			}
			n := namespaceOf(q.GetNamespaceDescriptor(), tx.Now())
			if err := checkNamespace(&tx.State, n); err != nil {
				return err
			}
			moved = old.Setting(catalog.GroupAttribute) != n.Setting(catalog.GroupAttribute)
			tx.PutNamespace(n)
			return nil
		})
		unlock() // or the tables that move would wait for it
		if err != nil {
			return err
		}
		prepared()
		if moved {
			return m.settleAll(ctx)
		}
		return nil
	})
}

func (m *Master) deleteNamespace(ctx context.Context, q *pb.DeleteNamespaceRequest) (uint64, error) {
	name := q.GetNamespaceName()
	return m.submit(ctx, "DeleteNamespaceProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		unlock, err := m.lockNamespace(ctx, name, true)
		if err != nil {
			return err
		}
		defer unlock()
		err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
			if tx.Namespace(name) == nil {
				return namespaceNotFound(name)
			}
			if name == meta.DefaultNamespace || name == meta.SystemNamespace {
				return refuse(wire.ClassConstraint, "Reserved namespace %s cannot be removed.", name)
			}
			n := 0
			for t := range tx.Tables() {
				if t.Name.Namespace == name {
					n++
				}
			}
			if n > 0 {
				return refuse(wire.ClassConstraint, "Only empty namespaces can be removed. Namespace %s has %d tables", name, n)
			}
			tx.DeleteNamespace(name)
			tx.DropNamespaceQuotas(name)
			return nil
		})
		if err == nil {
			prepared()
			m.event(eventlog.Event{Method: "delete-namespace", Detail: name})
		}
		return err
	})
}

func (m *Master) getNamespace(_ context.Context, q *pb.GetNamespaceDescriptorRequest) (*pb.GetNamespaceDescriptorResponse, error) {
	n := m.state().Namespace(q.GetNamespaceName())
	if n == nil {
		return nil, namespaceNotFound(q.GetNamespaceName())
	}
	return &pb.GetNamespaceDescriptorResponse{NamespaceDescriptor: n.ToProto()}, nil
}

func (m *Master) listNamespaces(context.Context, *pb.ListNamespacesRequest) (*pb.ListNamespacesResponse, error) {
	r := &pb.ListNamespacesResponse{}
	for n := range m.state().Namespaces() {
		r.NamespaceName = append(r.NamespaceName, n.Name)
	}
	return r, nil
}

func (m *Master) listNamespaceDescriptors(context.Context, *pb.ListNamespaceDescriptorsRequest) (*pb.ListNamespaceDescriptorsResponse, error) {
	r := &pb.ListNamespaceDescriptorsResponse{}
	for n := range m.state().Namespaces() {
		r.NamespaceDescriptor = append(r.NamespaceDescriptor, n.ToProto())
	}
	return r, nil
}

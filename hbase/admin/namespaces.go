package admin

import (
	"context"
	"slices"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// Namespace is a namespace with its settings.
type Namespace struct {
	Name          string
	Configuration map[string]string
}

func (n Namespace) toProto() *pb.NamespaceDescriptor {
	return &pb.NamespaceDescriptor{Name: []byte(n.Name), Configuration: configurationToProto(n.Configuration)}
}

func namespaceFromProto(p *pb.NamespaceDescriptor) Namespace {
	return Namespace{Name: string(p.GetName()), Configuration: configurationFromProto(p.GetConfiguration())}
}

func checkNamespace(op, name string) error {
	if err := meta.CheckNamespace(name); err != nil {
		return invalid(op, ofNamespace(name), err.Error())
	}
	return nil
}

// CreateNamespace makes a namespace.
func (a *Admin) CreateNamespace(ctx context.Context, n Namespace) error {
	const op = "create namespace"
	if err := checkNamespace(op, n.Name); err != nil {
		return err
	}
	req := &pb.CreateNamespaceRequest{NamespaceDescriptor: n.toProto()}
	req.NonceGroup, req.Nonce = a.nonces()
	return a.run(ctx, op, ofNamespace(n.Name), "CreateNamespace", req, &pb.CreateNamespaceResponse{})
}

// ModifyNamespace replaces a namespace's settings.
func (a *Admin) ModifyNamespace(ctx context.Context, n Namespace) error {
	const op = "modify namespace"
	if err := checkNamespace(op, n.Name); err != nil {
		return err
	}
	req := &pb.ModifyNamespaceRequest{NamespaceDescriptor: n.toProto()}
	req.NonceGroup, req.Nonce = a.nonces()
	return a.run(ctx, op, ofNamespace(n.Name), "ModifyNamespace", req, &pb.ModifyNamespaceResponse{})
}

// DeleteNamespace drops an empty namespace.
func (a *Admin) DeleteNamespace(ctx context.Context, name string) error {
	const op = "delete namespace"
	if err := checkNamespace(op, name); err != nil {
		return err
	}
	req := &pb.DeleteNamespaceRequest{NamespaceName: &name}
	req.NonceGroup, req.Nonce = a.nonces()
	return a.run(ctx, op, ofNamespace(name), "DeleteNamespace", req, &pb.DeleteNamespaceResponse{})
}

// DescribeNamespace gives a namespace's settings.
func (a *Admin) DescribeNamespace(ctx context.Context, name string) (Namespace, error) {
	const op = "describe namespace"
	if err := checkNamespace(op, name); err != nil {
		return Namespace{}, err
	}
	var resp pb.GetNamespaceDescriptorResponse
	err := a.master(ctx, op, "GetNamespaceDescriptor", &pb.GetNamespaceDescriptorRequest{NamespaceName: &name}, &resp, session.Safe)
	if err != nil {
		return Namespace{}, fault.Wrap(op, ofNamespace(name), err)
	}
	return namespaceFromProto(resp.NamespaceDescriptor), nil
}

// ListNamespaces gives all namespaces, sorted by name.
func (a *Admin) ListNamespaces(ctx context.Context) ([]Namespace, error) {
	var resp pb.ListNamespaceDescriptorsResponse
	err := a.master(ctx, "list namespaces", "ListNamespaceDescriptors", &pb.ListNamespaceDescriptorsRequest{}, &resp, session.Safe)
	if err != nil {
		return nil, fault.Wrap("list namespaces", "", err)
	}
	out := make([]Namespace, len(resp.NamespaceDescriptor))
	for i, p := range resp.NamespaceDescriptor {
		out[i] = namespaceFromProto(p)
	}
	slices.SortFunc(out, func(a, b Namespace) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out, nil
}

// NamespaceTables gives the tables of a namespace, sorted by name.
func (a *Admin) NamespaceTables(ctx context.Context, name string) ([]TableName, error) {
	const op = "list tables of namespace"
	if err := checkNamespace(op, name); err != nil {
		return nil, err
	}
	var resp pb.ListTableNamesByNamespaceResponse
	err := a.master(ctx, op, "ListTableNamesByNamespace", &pb.ListTableNamesByNamespaceRequest{NamespaceName: &name}, &resp, session.Safe)
	if err != nil {
		return nil, fault.Wrap(op, ofNamespace(name), err)
	}
	return tableNames(resp.TableName), nil
}

func tableNames(ps []*pb.TableName) []TableName {
	out := make([]TableName, len(ps))
	for i, p := range ps {
		out[i] = meta.TableFromProto(p)
	}
	slices.SortFunc(out, TableName.Compare)
	return out
}

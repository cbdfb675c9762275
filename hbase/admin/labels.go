package admin

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Visibility labels are kept in hbase:labels and managed by the coprocessor
// VisibilityLabelsService on its only region (HBase's VisibilityClient).
func labelsTable() TableName { return TableName{Namespace: meta.SystemNamespace, Qualifier: "labels"} }

func (a *Admin) labels(ctx context.Context, op, method string, param interface{ MarshalVT() ([]byte, error) }, result wire.Unmarshaler) error {
	err := a.endpoint(ctx, op, labelsTable(), "VisibilityLabelsService", method, param, result)
	if err != nil && (isMissingTable(err) || unknownService(err)) {
		return errNotSupported(op, "", "visibility labels are not enabled (VisibilityController)", err)
	}
	return fault.Wrap(op, "", err)
}

// labelResults joins the exceptions of single labels; the others were done.
func labelResults(op string, names []string, resp *pb.VisibilityLabelsResponse) error {
	var errs []error
	for i, r := range resp.Result {
		if r.GetException() == nil {
			continue
		}
		object := "labels"
		if i < len(names) {
			object = "label " + strconv.Quote(names[i])
		}
		e := labelException(r.GetException().GetName(), string(r.GetException().GetValue()))
		errs = append(errs, &fault.Error{Op: op, Object: object, Err: e})
	}
	return errors.Join(errs...)
}

// labelException reads an exception that travels as its name and its text with
// the stack behind: often the one meant stands inside others, each as
// "class: message".
func labelException(class, text string) *wire.RemoteError {
	text, _, _ = strings.Cut(text, "\n")
	for {
		inner, rest, ok := strings.Cut(text, ": ")
		if !ok || strings.ContainsAny(inner, " '") || !strings.HasPrefix(inner, "org.apache.hadoop.") {
			break
		}
		class, text = inner, rest
	}
	e := wire.NewRemoteError(class, text)
	e.DoNotRetry = true
	return e
}

func checkLabels(op string, labels []string) error {
	if len(labels) == 0 {
		return invalid(op, "labels", "are missing")
	}
	for _, l := range labels {
		if l == "" {
			return invalid(op, "label", "is empty")
		}
	}
	return nil
}

// AddLabels makes visibility labels. Some may be made even if others fail; the
// error joins those. Only superusers may.
func (a *Admin) AddLabels(ctx context.Context, labels ...string) error {
	const op = "add labels"
	if err := checkLabels(op, labels); err != nil {
		return err
	}
	req := &pb.VisibilityLabelsRequest{}
	for _, l := range labels {
		req.VisLabel = append(req.VisLabel, &pb.VisibilityLabel{Label: []byte(l)})
	}
	var resp pb.VisibilityLabelsResponse
	if err := a.labels(ctx, op, "addLabels", req, &resp); err != nil {
		return err
	}
	return labelResults(op, labels, &resp)
}

// ListLabels lists the labels that match a regular expression, in Java's
// syntax and judged by the server, as a whole; "" means all.
func (a *Admin) ListLabels(ctx context.Context, pattern string) ([]string, error) {
	req := &pb.ListLabelsRequest{}
	if pattern != "" {
		req.Regex = &pattern
	}
	var resp pb.ListLabelsResponse
	if err := a.labels(ctx, "list labels", "listLabels", req, &resp); err != nil {
		return nil, err
	}
	return plainTexts(resp.Label), nil
}

// SetAuths lets a user (or @group) read cells with these labels too.
func (a *Admin) SetAuths(ctx context.Context, user string, labels ...string) error {
	return a.auths(ctx, "set auths", "setAuths", user, labels)
}

// ClearAuths takes labels away from a user (or @group).
func (a *Admin) ClearAuths(ctx context.Context, user string, labels ...string) error {
	return a.auths(ctx, "clear auths", "clearAuths", user, labels)
}

func (a *Admin) auths(ctx context.Context, op, method, user string, labels []string) error {
	if user == "" {
		return invalid(op, "user", "is missing")
	}
	if err := checkLabels(op, labels); err != nil {
		return err
	}
	req := &pb.SetAuthsRequest{User: []byte(user)}
	for _, l := range labels {
		req.Auth = append(req.Auth, []byte(l))
	}
	var resp pb.VisibilityLabelsResponse
	if err := a.labels(ctx, op, method, req, &resp); err != nil {
		return err
	}
	return labelResults(op, labels, &resp)
}

// GetAuths lists the labels of a user (or @group).
func (a *Admin) GetAuths(ctx context.Context, user string) ([]string, error) {
	const op = "get auths"
	if user == "" {
		return nil, invalid(op, "user", "is missing")
	}
	var resp pb.GetAuthsResponse
	if err := a.labels(ctx, op, "getAuths", &pb.GetAuthsRequest{User: []byte(user)}, &resp); err != nil {
		return nil, err
	}
	return plainTexts(resp.Auth), nil
}

// plainTexts keeps the server's order.
func plainTexts(bs [][]byte) []string {
	out := make([]string, len(bs))
	for i, b := range bs {
		out[i] = string(b)
	}
	return out
}

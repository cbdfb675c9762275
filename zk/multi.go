package zk

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// Op is one operation of a Multi; see CreateOp, SetOp, DeleteOp and CheckOp.
type Op struct{ op jute.Op }

// CreateOp creates a node, like Conn.Create.
func CreateOp(path string, data []byte, mode CreateMode, acl []ACL) Op {
	code := jute.OpCreate
	if mode == ContainerNode {
		code = jute.OpCreateContainer
	}
	if len(acl) == 0 {
		acl = OpenACL()
	}
	return Op{jute.Op{Code: code, Path: path, Data: data, ACL: acl, Flags: int32(mode)}}
}

// SetOp replaces a node's data, like Conn.Set.
func SetOp(path string, data []byte, version int32) Op {
	return Op{jute.Op{Code: jute.OpSetData, Path: path, Data: data, Version: version}}
}

// DeleteOp removes a node, like Conn.Delete.
func DeleteOp(path string, version int32) Op {
	return Op{jute.Op{Code: jute.OpDelete, Path: path, Version: version}}
}

// CheckOp fails the Multi unless the node exists with that version (or AnyVersion).
func CheckOp(path string, version int32) Op {
	return Op{jute.Op{Code: jute.OpCheck, Path: path, Version: version}}
}

// OpResult is what one operation of a Multi yielded: the path of a create, the metadata of a set.
type OpResult struct {
	Path string
	Stat Stat
}

// Multi applies all operations or none. If one fails, the error holds a *MultiError that says which.
func (c *Conn) Multi(ctx context.Context, ops ...Op) ([]OpResult, error) {
	began := time.Now()
	if len(ops) == 0 {
		return nil, nil
	}
	wire := make([]jute.Op, len(ops))
	for i := range ops {
		wire[i] = ops[i].op
		full, err := c.full(wire[i].Path, CreateMode(wire[i].Flags).sequential())
		if err != nil {
			return nil, c.opError("multi", "", fmt.Errorf("operation %d: %w", i, err), began)
		}
		wire[i].Path = full
	}
	var results []jute.OpResult
	err := c.do(ctx, request{
		name: "multi", op: jute.OpMulti, write: true,
		body:   func(w *jute.Writer) { jute.EncodeMulti(w, wire) },
		decode: func(r *jute.Reader) { results = jute.DecodeMultiResults(r) },
	})
	if err == nil && len(results) != len(ops) {
		err = c.opError("multi", "", fmt.Errorf("%d results for %d operations", len(results), len(ops)), began)
	}
	if err != nil {
		return nil, err
	}
	out := make([]OpResult, len(results))
	for i, res := range results {
		// Before the failing operation the code is OK, after it "runtime inconsistency"; the first code that is neither is the culprit's.
		if res.Err != jute.OK {
			oe := c.opError("multi", "", &MultiError{Index: i, Op: wire[i].Code.String(), Path: ops[i].op.Path, Code: res.Err}, began)
			oe.Answered = true
			return nil, oe
		}
		if res.Path != "" {
			res.Path = c.strip(res.Path)
		}
		out[i] = OpResult{Path: res.Path, Stat: res.Stat}
	}
	return out, nil
}

package regionserver

import (
	"os"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// space is what the region's table uses of its space quota; nil if it has none.
func (s *Server) space(r *region) *host.Space {
	if s.cfg.Quotas == nil {
		return nil
	}
	return s.cfg.Quotas.Space(r.Info.Table)
}

// spaceNames are what HBase calls the kinds of mutations.
var spaceNames = map[store.Kind]string{store.Put: "Put", store.Delete: "Delete", store.Append: "Append", store.Increment: "Increment"}

// spaceForbids refuses mutations that the policy of a violated space quota does
// not allow.
func spaceForbids(u *host.Space, ops ...store.Op) error {
	if u == nil || !u.Violated {
		return nil
	}
	for i := range ops {
		kind := ops[i].Kind
		switch u.Policy {
		case pb.SpaceViolationPolicy_NO_INSERTS:
			if kind == store.Delete {
				continue
			}
		case pb.SpaceViolationPolicy_DISABLE:
			return spaceLimit(u.Policy.String(), "This table is disabled due to violating a space quota.")
		}
		return spaceLimit(u.Policy.String(), spaceNames[kind]+"s are disallowed due to a space quota.")
	}
	return nil
}

// spaceLimit is a SpaceLimitingException, whose text begins with the policy.
func spaceLimit(policy, text string) error {
	return wire.NewRemoteError(wire.ClassSpaceLimiting, policy+" "+text)
}

// spaceForbidsFiles refuses files that do not fit into what is left of a space
// quota.
func spaceForbidsFiles(u *host.Space, list []*pb.BulkLoadHFileRequest_FamilyPath) error {
	if u == nil {
		return nil
	}
	policy := "BulkLoadVerifying"
	if u.Violated {
		policy = u.Policy.String()
	}
	left, size := int64(u.Limit)-int64(u.Used), int64(0)
	paths := make([]string, len(list))
	for i, p := range list {
		paths[i] = p.GetPath()
	}
	for _, p := range paths {
		path, err := localPath(p)
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			// HBase's words, its spelling included.
			return spaceLimit(policy, "Colud not verify length of file to bulk load: "+p)
		}
		if size += info.Size(); size > left {
			return spaceLimit(policy, "Bulk load of ["+strings.Join(paths, ", ")+"] is disallowed because the file(s) exceed the limits of a space quota.")
		}
	}
	return nil
}

// spaceForbidsCompaction says that compactions are off because of a violated
// space quota. HBase answers them and does nothing.
func spaceForbidsCompaction(u *host.Space) bool {
	return u != nil && u.Violated && u.Policy == pb.SpaceViolationPolicy_NO_WRITES_COMPACTIONS
}

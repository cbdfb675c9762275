package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
)

// Replicated is implemented by registries that know the secondary replicas of
// hbase:meta.
type Replicated interface {
	// MetaReplicas gives those that are open, by ascending id; none is no
	// error.
	MetaReplicas(ctx context.Context) ([]meta.ReplicaLocation, error)
}

// maxMetaReplicas bounds the replicas read; clusters have two.
const maxMetaReplicas = 16

// MetaReplicas reads meta-region-server-1 and so on.
func (r *zkRegistry) MetaReplicas(ctx context.Context) ([]meta.ReplicaLocation, error) {
	var names []string
	err := r.read(ctx, func(c zkConn) (err error) {
		names, err = c.children(ctx, r.parent)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list znode %s: %w", r.parent, err)
	}
	var list []meta.ReplicaLocation
	for _, name := range names {
		text, ok := strings.CutPrefix(name, metaZNode+"-")
		if !ok {
			continue
		}
		id, err := strconv.ParseUint(text, 10, 16)
		if err != nil || id == 0 || len(list) == maxMetaReplicas {
			continue
		}
		data, err := r.znode(ctx, name)
		var odd *ZNodeError
		if errors.Is(err, errNoNode) || errors.As(err, &odd) {
			continue // it has just been taken away, or is not assigned
		}
		if err != nil {
			return nil, err
		}
		server, state, err := decodeMetaServer(data)
		if err != nil || state != pb.RegionState_OPEN {
			continue
		}
		list = append(list, meta.ReplicaLocation{ID: int32(id), Server: server, SeqNum: meta.NoSeqNum})
	}
	slices.SortFunc(list, func(a, b meta.ReplicaLocation) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// MetaReplicas asks for the servers of hbase:meta and takes the secondary ones.
func (r *rpcRegistry) MetaReplicas(ctx context.Context) ([]meta.ReplicaLocation, error) {
	return ask(ctx, r, "replicas of hbase:meta", func(ctx context.Context, c *rpc.Conn) ([]meta.ReplicaLocation, error) {
		var resp pb.GetMetaRegionLocationsResponse
		call := rpc.Call{Method: "GetMetaRegionLocations", Param: &pb.GetMetaRegionLocationsRequest{}, Result: &resp}
		if err := c.Do(ctx, &call); err != nil {
			return nil, err
		}
		return metaReplicas(resp.MetaLocations), nil
	})
}

func metaReplicas(locs []*pb.RegionLocation) (list []meta.ReplicaLocation) {
	for _, l := range locs {
		id := l.RegionInfo.GetReplicaId()
		if id <= 0 || id > 1<<16-1 || l.ServerName == nil || len(list) == maxMetaReplicas {
			continue
		}
		if server, err := checkServer(l.ServerName); err == nil {
			list = append(list, meta.ReplicaLocation{ID: id, Server: server, SeqNum: meta.NoSeqNum})
		}
	}
	slices.SortFunc(list, func(a, b meta.ReplicaLocation) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

var (
	_ Replicated = (*zkRegistry)(nil)
	_ Replicated = (*rpcRegistry)(nil)
)

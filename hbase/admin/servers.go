package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// server performs an AdminService call on a server.
func (a *Admin) server(ctx context.Context, op string, server ServerName, method string, param wire.Marshaler, result wire.Unmarshaler, idem session.Idempotency) error {
	ctx, cancel := bound(ctx, a.cfg.ProcedureTimeout)
	defer cancel()
	_, err := a.core.CallServer(ctx, server, &session.ServerCall{
		Service: session.AdminService, Method: method, Op: op, Param: param, Result: result, Idempotency: idem,
	})
	return err
}

// eachServer does f for several servers at a time, for all live ones if none
// are given. Whatever fails does not keep it from the others.
func (a *Admin) eachServer(ctx context.Context, op string, servers []ServerName, f func(context.Context, ServerName) error) error {
	if len(servers) == 0 {
		live, err := a.RegionServers(ctx)
		if err != nil {
			return fault.Wrap(op, "", err)
		}
		servers = live
	}
	return inParallel(servers, func(s ServerName) error { return fault.Wrap(op, s.String(), f(ctx, s)) })
}

func serversToProto(servers []ServerName) []*pb.ServerName {
	out := make([]*pb.ServerName, len(servers))
	for i, s := range servers {
		out[i] = s.ToProto()
	}
	return out
}

// DecommissionServers marks region servers as draining: the balancer gives them
// no regions, also after they were restarted. With offload their regions are
// moved away; it does not wait for those moves. Names without a start code are
// allowed for servers that are down.
func (a *Admin) DecommissionServers(ctx context.Context, servers []ServerName, offload bool) error {
	const op = "decommission servers"
	if len(servers) == 0 {
		return invalid(op, "servers", "are missing")
	}
	err := a.slowMaster(ctx, op, "DecommissionRegionServers", &pb.DecommissionRegionServersRequest{
		ServerName: serversToProto(servers), Offload: &offload,
	}, &pb.DecommissionRegionServersResponse{}, session.Safe)
	return fault.Wrap(op, serverList(servers), fault.Since(err, "DecommissionRegionServers", "2.0 and later"))
}

// RecommissionServer takes the mark off a region server and moves the regions
// given (full or encoded names) to it.
func (a *Admin) RecommissionServer(ctx context.Context, server ServerName, regions ...string) error {
	const op = "recommission server"
	req := &pb.RecommissionRegionServerRequest{ServerName: server.ToProto()}
	for _, r := range regions {
		encoded, err := encodedName(op, r)
		if err != nil {
			return err
		}
		req.Region = append(req.Region, regionByEncoded(encoded))
	}
	err := a.slowMaster(ctx, op, "RecommissionRegionServer", req, &pb.RecommissionRegionServerResponse{}, session.Safe)
	return fault.Wrap(op, server.String(), fault.Since(err, "RecommissionRegionServer", "2.0 and later"))
}

// DecommissionedServers lists the region servers that are marked as draining,
// sorted by name.
func (a *Admin) DecommissionedServers(ctx context.Context) ([]ServerName, error) {
	const op = "list decommissioned servers"
	var resp pb.ListDecommissionedRegionServersResponse
	err := a.master(ctx, op, "ListDecommissionedRegionServers", &pb.ListDecommissionedRegionServersRequest{}, &resp, session.Safe)
	return serverNames(resp.GetServerName()), fault.Wrap(op, "", fault.Since(err, "ListDecommissionedRegionServers", "2.0 and later"))
}

// DeadServers lists the region servers the master takes for dead.
func (a *Admin) DeadServers(ctx context.Context) ([]ServerName, error) {
	s, err := a.status(ctx, "list dead servers", []pb.Option{pb.Option_DEAD_SERVERS})
	if err != nil {
		return nil, err
	}
	return s.Dead, nil
}

// UnknownServers lists servers that hbase:meta names as places of regions and
// the master knows neither as live nor as dead: their regions are stuck, see
// [Hbck.ScheduleCrashOfUnknownServers]. HBase 2.5 and later.
func (a *Admin) UnknownServers(ctx context.Context) ([]ServerName, error) {
	const op = "list unknown servers"
	major, minor, err := a.version(ctx, op)
	if err != nil {
		return nil, err
	}
	if major < 2 || major == 2 && minor < 5 {
		return nil, &fault.Error{Op: op, Err: &fault.Unsupported{What: "a list of unknown servers", Versions: "2.5 and later"}}
	}
	// HBase 3 put the decommissioned servers where 2.x has the unknown ones,
	// in the options and in the answer.
	option := pb.Option_DECOMMISSIONED_SERVERS
	if major > 2 {
		option = pb.Option_UNKNOWN_SERVERS
	}
	var resp pb.GetClusterStatusResponse
	if err := a.master(ctx, op, "GetClusterStatus", &pb.GetClusterStatusRequest{Options: []pb.Option{option}}, &resp, session.Safe); err != nil {
		return nil, fault.Wrap(op, "", err)
	}
	if major > 2 {
		return serverNames(resp.GetClusterStatus().GetUnknownServers()), nil
	}
	return serverNames(resp.GetClusterStatus().GetDecommissionedServers()), nil
}

// ClearDeadServers makes the master forget dead region servers, all of them if
// none is given. It gives those it would not forget because they are being
// dealt with or are not dead.
func (a *Admin) ClearDeadServers(ctx context.Context, servers ...ServerName) ([]ServerName, error) {
	const op = "clear dead servers"
	if len(servers) == 0 {
		dead, err := a.DeadServers(ctx)
		if err != nil || len(dead) == 0 {
			return nil, err
		}
		servers = dead
	}
	var resp pb.ClearDeadServersResponse
	err := a.master(ctx, op, "ClearDeadServers", &pb.ClearDeadServersRequest{ServerName: serversToProto(servers)}, &resp, session.Safe)
	return serverNames(resp.GetServerName()), fault.Wrap(op, serverList(servers), err)
}

// StopMaster stops the active master; a backup master takes over, if there is
// one.
func (a *Admin) StopMaster(ctx context.Context) error {
	err := a.master(ctx, "stop master", "StopMaster", &pb.StopMasterRequest{}, &pb.StopMasterResponse{}, session.Unsafe)
	return fault.Wrap("stop master", "", err)
}

// Shutdown stops the whole cluster: all masters and region servers.
func (a *Admin) Shutdown(ctx context.Context) error {
	err := a.master(ctx, "shutdown", "Shutdown", &pb.ShutdownRequest{}, &pb.ShutdownResponse{}, session.Unsafe)
	return fault.Wrap("shutdown", "", err)
}

// InMaintenanceMode says whether the master runs in maintenance mode
// (hbase.master.maintenance_mode), in which it serves hbase:meta and nothing
// else.
func (a *Admin) InMaintenanceMode(ctx context.Context) (bool, error) {
	const op = "maintenance mode"
	var resp pb.IsInMaintenanceModeResponse
	err := a.master(ctx, op, "IsMasterInMaintenanceMode", &pb.IsInMaintenanceModeRequest{}, &resp, session.Safe)
	return resp.GetInMaintenanceMode(), fault.Wrap(op, "", err)
}

// RollWAL makes a region server begin a new log file.
func (a *Admin) RollWAL(ctx context.Context, server ServerName) error {
	const op = "roll wal"
	return fault.Wrap(op, server.String(), a.server(ctx, op, server, "RollWALWriter", &pb.RollWALWriterRequest{}, &pb.RollWALWriterResponse{}, session.Safe))
}

// RollAllWALs makes all region servers begin new log files.
func (a *Admin) RollAllWALs(ctx context.Context) error {
	return a.eachServer(ctx, "roll wal", nil, a.RollWAL)
}

// UpdateConfiguration makes a server, a region server or a master, read its
// configuration again; only some settings take effect without a restart.
func (a *Admin) UpdateConfiguration(ctx context.Context, server ServerName) error {
	const op = "update configuration"
	return fault.Wrap(op, server.String(), a.server(ctx, op, server, "UpdateConfiguration", &pb.UpdateConfigurationRequest{}, &pb.UpdateConfigurationResponse{}, session.Safe))
}

// UpdateAllConfigurations makes all live region servers and all masters read
// their configurations again.
func (a *Admin) UpdateAllConfigurations(ctx context.Context) error {
	const op = "update configuration"
	servers, err := a.RegionServers(ctx)
	if err != nil {
		return fault.Wrap(op, "", err)
	}
	s, err := a.status(ctx, op, []pb.Option{pb.Option_MASTER, pb.Option_BACKUP_MASTERS})
	if err != nil {
		return err
	}
	servers = append(servers, s.Backups...)
	if !s.Master.IsZero() {
		servers = append(servers, s.Master)
	}
	return a.eachServer(ctx, op, servers, a.UpdateConfiguration)
}

// SetCompactions switches the compactions of region servers, of all live ones
// if none are given, and says what it was on each before. It lasts until the
// server is restarted. HBase 2.2 and later.
func (a *Admin) SetCompactions(ctx context.Context, on bool, servers ...ServerName) (was map[ServerName]bool, err error) {
	const op = "compaction switch"
	var mu sync.Mutex
	was = map[ServerName]bool{}
	err = a.eachServer(ctx, op, servers, func(ctx context.Context, s ServerName) error {
		var resp pb.CompactionSwitchResponse
		if err := a.server(ctx, op, s, "CompactionSwitch", &pb.CompactionSwitchRequest{Enabled: &on}, &resp, session.Safe); err != nil {
			return fault.Since(err, "CompactionSwitch", "2.2 and later")
		}
		mu.Lock()
		defer mu.Unlock()
		was[s] = resp.GetPrevState()
		return nil
	})
	return was, err
}

// ClearCompactionQueues drops what waits in a region server's compaction
// queues: "long", "short", or both if none are given.
func (a *Admin) ClearCompactionQueues(ctx context.Context, server ServerName, queues ...string) error {
	const op = "clear compaction queues"
	for _, q := range queues {
		if q != "long" && q != "short" {
			return invalid(op, "queue "+q, "is neither long nor short")
		}
	}
	if len(queues) == 0 {
		queues = []string{"long", "short"}
	}
	err := a.server(ctx, op, server, "ClearCompactionQueues", &pb.ClearCompactionQueuesRequest{QueueName: queues}, &pb.ClearCompactionQueuesResponse{}, session.Safe)
	return fault.Wrap(op, server.String(), fault.Since(err, "ClearCompactionQueues", "2.0 and later"))
}

// FlushServer writes the memory of all regions a server has open to files.
func (a *Admin) FlushServer(ctx context.Context, server ServerName) error {
	return a.eachServerRegion(ctx, "flush", server, func(ctx context.Context, r Region) error {
		return a.flushRegion(ctx, "flush", r, "")
	})
}

// CompactServer asks for a compaction of all regions a server has open, or,
// with major set, for one that rewrites all their files. It does not wait.
func (a *Admin) CompactServer(ctx context.Context, server ServerName, major bool) error {
	return a.eachServerRegion(ctx, "compact", server, func(ctx context.Context, r Region) error {
		return a.compactRegion(ctx, "compact", r, "", major)
	})
}

func (a *Admin) eachServerRegion(ctx context.Context, op string, server ServerName, f func(context.Context, Region) error) error {
	regions, err := a.ServerRegions(ctx, server)
	if err != nil {
		return fault.Wrap(op, server.String(), err)
	}
	return inParallel(regions, func(r Region) error { return f(ctx, r) })
}

// inParallel does f for all, several at a time, and joins the errors.
func inParallel[T any](list []T, f func(T) error) error {
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	slots := make(chan struct{}, regionWorkers)
	for i := range list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(list[i])
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ServerPorts are the ports of a server.
type ServerPorts struct {
	Server ServerName
	// Info is the web port, which also serves /logLevel, /jmx and /dump; 0 if
	// it has none.
	Info int
}

// ServerInfo asks a server, a region server or a master, for its name and its
// web port.
func (a *Admin) ServerInfo(ctx context.Context, server ServerName) (ServerPorts, error) {
	const op = "server info"
	var resp pb.GetServerInfoResponse
	if err := a.server(ctx, op, server, "GetServerInfo", &pb.GetServerInfoRequest{}, &resp, session.Safe); err != nil {
		return ServerPorts{}, fault.Wrap(op, server.String(), err)
	}
	i := resp.GetServerInfo()
	return ServerPorts{Server: meta.ServerFromProto(i.GetServerName()), Info: int(i.GetWebuiPort())}, nil
}

// CachedFiles names the files of which a region server's block cache holds all
// blocks, as its persistent cache tells, sorted. HBase 2.6 and later.
func (a *Admin) CachedFiles(ctx context.Context, server ServerName) ([]string, error) {
	const op = "list cached files"
	var resp pb.GetCachedFilesListResponse
	err := a.server(ctx, op, server, "GetCachedFilesList", &pb.GetCachedFilesListRequest{}, &resp, session.Safe)
	files := resp.GetCachedFiles()
	slices.Sort(files)
	return files, fault.Wrap(op, server.String(), fault.Since(err, "GetCachedFilesList", "2.6 and later"))
}

// FlushMasterStore writes the memory of the master's own region, which holds
// its procedures, to files. HBase 2.5 and later.
func (a *Admin) FlushMasterStore(ctx context.Context) error {
	const op = "flush master store"
	err := a.slowMaster(ctx, op, "FlushMasterStore", &pb.FlushMasterStoreRequest{}, &pb.FlushMasterStoreResponse{}, session.Safe)
	return fault.Wrap(op, "", fault.Since(err, "FlushMasterStore", "2.5 and later"))
}

func serverList(servers []ServerName) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.String()
	}
	return strings.Join(names, " ")
}

// ParseServerName reads HBase's text form of a server: host,port,startcode.
func ParseServerName(text string) (ServerName, error) {
	s, err := meta.ParseServerName(text)
	if err != nil {
		return s, invalid("parse", "server "+text, err.Error())
	}
	return s, nil
}

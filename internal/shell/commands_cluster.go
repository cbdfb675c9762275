package shell

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func clusterCommands() []command {
	return []command{
		{"list_liveservers", "tools", "list_liveservers", "Print the live region servers, as the master knows them.", serverList(func(st *admin.ClusterStatus) []hbase.ServerName {
			var out []hbase.ServerName
			for _, sv := range st.Live {
				out = append(out, sv.Server)
			}
			return out
		})},
		{"list_deadservers", "tools", "list_deadservers", "Print the region servers the master takes for dead.", serverList(func(st *admin.ClusterStatus) []hbase.ServerName { return st.Dead })},
		{"stop_regionserver", "tools", "stop_regionserver 'host:port'\nstop_regionserver 'host,port,startcode'", "Ask a region server to stop, closing its regions in good order.", runStopServer},
		{"rit", "tools", "rit", "Print the regions in transition.", runTransitions},
		{"regioninfo", "tools", "regioninfo 'ENCODED_REGIONNAME'\nregioninfo 'REGIONNAME'", "Print a region. Finding one by its encoded name looks through all tables.", runRegionInfo},
		{"compaction_state", "tools", "compaction_state 't'", "Say whether regions of a table are being compacted: NONE, MINOR, MAJOR or MAJOR_AND_MINOR.", runCompactionState},
		{"splitormerge_switch", "tools", "splitormerge_switch 'SPLIT', true\nsplitormerge_switch 'MERGE', false", "Switch splits or merges; prints what it was before.", runSplitOrMerge},
	}
}

func serverList(of func(*admin.ClusterStatus) []hbase.ServerName) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(0, 0); err != nil {
			return nil, err
		}
		st, err := s.Client.Admin().ClusterStatus(ctx)
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, sv := range of(st) {
			names = append(names, sv.String())
		}
		ans := say(names, append([]string{"SERVERNAME"}, names...)...)
		ans.counted = len(names)
		return ans, nil
	}
}

func runStopServer(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	name, err := a.text(0, "server")
	if err != nil {
		return nil, err
	}
	server, err := s.server(ctx, name)
	if err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().StopServer(ctx, server, "asked to by stop_regionserver in the shell")
}

func runTransitions(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	st, err := s.Client.Admin().ClusterStatus(ctx)
	if err != nil {
		return nil, err
	}
	ans := say(st.InTransition)
	ans.counted = len(st.InTransition)
	for _, r := range st.InTransition {
		ans.lines = append(ans.lines, fmt.Sprintf("%s state=%s since=%s", r.Region.String(), r.State, r.Since.UTC().Format(time.RFC3339)))
	}
	return ans, nil
}

func runRegionInfo(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	name, err := a.text(0, "region")
	if err != nil {
		return nil, err
	}
	loc, err := s.Client.Admin().FindRegion(ctx, name)
	if err != nil {
		return nil, err
	}
	r := regionOf(loc)
	return say(r, fmt.Sprintf("{ENCODED => %s, NAME => '%s', STARTKEY => '%s', ENDKEY => '%s'}", r.Encoded, r.Name, r.Start, r.End)), nil
}

func runCompactionState(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	table, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	state, err := s.Client.Admin().CompactionState(ctx, table)
	if err != nil {
		return nil, err
	}
	ans := say(state.String(), state.String())
	ans.value = strconv.Quote(state.String())
	return ans, nil
}

func runSplitOrMerge(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 2); err != nil {
		return nil, err
	}
	which, err := a.text(0, "switch")
	if err != nil {
		return nil, err
	}
	on, ok := a.list[1].(bool)
	if !ok {
		return nil, a.fail("true or false is needed")
	}
	adm := s.Client.Admin()
	call := adm.SetSplits
	switch strings.ToUpper(which) {
	case "SPLIT":
	case "MERGE":
		call = adm.SetMerges
	default:
		return nil, a.fail("the switch is 'SPLIT' or 'MERGE'")
	}
	was, err := call(ctx, on)
	if err != nil {
		return nil, err
	}
	return boolAnswer(was), nil
}

package shell

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// wholeMatch compiles an expression that must match a whole name, as HBase's
// table patterns do.
func wholeMatch(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile("^(?:" + pattern + ")$")
}

func generalCommands() []command {
	return []command{
		{"status", "general", "status\nstatus 'simple'\nstatus 'detailed'", "Print the cluster's state: 'summary' (default), 'simple' (a paragraph a server) or 'detailed' (and its regions).", runStatus},
		{"version", "general", "version", "Print the cluster's version.", runVersion},
		{"whoami", "general", "whoami", "Print the user that calls are made as.", runWhoAmI},
		{"config", "general", "config", "Print the client's effective configuration.", runConfig},
	}
}

func toolCommands() []command {
	return []command{
		{"move", "tools", "move 'ENCODED_REGIONNAME'\nmove 'ENCODED_REGIONNAME', 'host,port,startcode'\nmove 'ENCODED_REGIONNAME', 'host:port'", "Move a region to a server, or to one of the master's choice.", runMove},
		{"split", "tools", "split 't'\nsplit 't', 'key'\nsplit 'ENCODED_REGIONNAME', 'key'", "Split a table's regions in the middle, or the region that holds a key there.", runSplit},
		{"merge_region", "tools", "merge_region 'ENCODED_A', 'ENCODED_B'\nmerge_region 'ENCODED_A', 'ENCODED_B', true", "Merge adjacent regions; true merges regions that are not adjacent.", runMerge},
		{"assign", "tools", "assign 'ENCODED_REGIONNAME'", "Open a region somewhere.", onRegion((*admin.Admin).AssignRegion)},
		{"unassign", "tools", "unassign 'ENCODED_REGIONNAME'", "Close a region; its table being enabled, the master opens it again.", onRegion((*admin.Admin).UnassignRegion)},
		{"balancer", "tools", "balancer\nbalancer 'ignore_rit'\nbalancer 'dry_run'", "Run the balancer once: also while regions are in transition ('ignore_rit', in HBase 2.4 'force'), or plan only ('dry_run', HBase 2.5 and later).", runBalancer},
		{"balance_switch", "tools", "balance_switch true", "Switch the balancer; prints what it was before.", runBalanceSwitch},
		{"balancer_enabled", "tools", "balancer_enabled", "Say whether the balancer is on.", runBalancerEnabled},
		{"flush", "tools", "flush 't'\nflush 't', 'f'\nflush 'ENCODED_REGIONNAME'\nflush 'host,port,startcode'", "Write the memory of a table, a family, a region or a region server to files.", runFlush},
		{"compact", "tools", "compact 't'\ncompact 't', 'f'\ncompact 'ENCODED_REGIONNAME', 'f'", "Merge some files of a table, a region or a family.", compaction(false)},
		{"major_compact", "tools", "major_compact 't'\nmajor_compact 't', 'f'\nmajor_compact 'ENCODED_REGIONNAME', 'f'", "Rewrite all files of a table, a region or a family, dropping what is deleted.", compaction(true)},
		{"locate_region", "tools", "locate_region 't', 'row'", "Print the region of a row and its server, read from hbase:meta.", runLocate},
		{"list_regions", "tools", "list_regions 't'\nlist_regions 't', 'host'\nlist_regions 't', {SERVER_NAME => 'host,port', LOCALITY_THRESHOLD => 0.8}",
			"Print a table's regions with their servers. A server's name, or the beginning of one, leaves only its regions; LOCALITY_THRESHOLD those less local than that.", runListRegions},
		{"get_splits", "tools", "get_splits 't'", "Print the keys at which a table's regions meet.", runGetSplits},
		{"list_regionservers", "tools", "list_regionservers", "Print the live region servers.", runListServers},
	}
}

func runStatus(ctx context.Context, s *Shell, a args) (*answer, error) {
	format := "summary"
	if a.len() > 0 {
		var err error
		if format, err = a.text(0, "format"); err != nil {
			return nil, err
		}
	}
	st, err := s.Client.Admin().ClusterStatus(ctx)
	if err != nil {
		return nil, err
	}
	ans := say(st)
	switch format {
	case "summary":
		ans.lines = []string{fmt.Sprintf("1 active master, %d backup masters, %d servers, %d dead, %.4f average load", len(st.Backups), len(st.Live), len(st.Dead), st.AverageLoad())}
	case "simple", "detailed":
		ans.lines = statusLines(st, format == "detailed")
	default:
		return nil, a.fail("the format is 'summary', 'simple' or 'detailed'")
	}
	return ans, nil
}

func statusLines(st *admin.ClusterStatus, regions bool) []string {
	var out []string
	line := func(format string, v ...any) { out = append(out, fmt.Sprintf(format, v...)) }
	if regions {
		line("version %s", st.Version)
		line("%d regionsInTransition", len(st.InTransition))
		for _, r := range st.InTransition {
			line("    %s state=%s since=%s", r.Region.String(), r.State, r.Since.UTC().Format(time.RFC3339))
		}
	}
	line("active master:  %s %d", st.Master.Address(), st.Master.StartCode)
	line("%d backup masters", len(st.Backups))
	for _, b := range st.Backups {
		line("    %s %d", b.Address(), b.StartCode)
	}
	line("%d live servers", len(st.Live))
	for _, sv := range st.Live {
		line("    %s %d", sv.Server.Address(), sv.Server.StartCode)
		var reads, writes uint64
		for _, r := range sv.Regions {
			reads, writes = reads+r.ReadRequests, writes+r.WriteRequests
		}
		line("        requestsPerSecond=%d, numberOfOnlineRegions=%d, usedHeapMB=%d, maxHeapMB=%d, readRequestsCount=%d, writeRequestsCount=%d",
			sv.Requests, len(sv.Regions), sv.UsedHeapMB, sv.MaxHeapMB, reads, writes)
		if !regions {
			continue
		}
		for _, r := range sv.Regions {
			line("        %q", hbase.Quote(r.Name))
			line("            numberOfStores=%d, numberOfStorefiles=%d, storefileSizeMB=%d, memstoreSizeMB=%d, readRequestsCount=%d, writeRequestsCount=%d, dataLocality=%g",
				r.Stores, r.StoreFiles, r.StoreFileMB, r.MemStoreMB, r.ReadRequests, r.WriteRequests, r.Locality)
		}
	}
	line("%d dead servers", len(st.Dead))
	for _, d := range st.Dead {
		line("    %s", d)
	}
	return out
}

func runVersion(ctx context.Context, s *Shell, a args) (*answer, error) {
	st, err := s.Client.Admin().ClusterStatus(ctx)
	if err != nil {
		return nil, err
	}
	return say(st.Version, st.Version), nil
}

func runWhoAmI(_ context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	c := s.Client.Config()
	text := c.User
	if text == "" {
		text = "the user of the process"
	}
	if c.RealUser != "" {
		return say(c.User, text+" (auth:PROXY) via "+c.RealUser+" (auth:SIMPLE)"), nil
	}
	return say(c.User, text+" (auth:SIMPLE)"), nil
}

func runConfig(ctx context.Context, s *Shell, a args) (*answer, error) {
	c := s.Client.Config()
	return say(c.String(), strings.TrimSpace(c.String())), nil
}

func onRegion(call func(*admin.Admin, context.Context, string) error) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 2); err != nil {
			return nil, err
		}
		region, err := a.text(0, "region")
		if err != nil {
			return nil, err
		}
		return say(nil), call(s.Client.Admin(), ctx, region)
	}
}

func compaction(major bool) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 3); err != nil {
			return nil, err
		}
		name, err := a.text(0, "table or region")
		if err != nil {
			return nil, err
		}
		family := ""
		if a.len() > 1 && a.list[1] != nil {
			if family, err = a.text(1, "family"); err != nil {
				return nil, err
			}
		}
		if kind, err := a.optional(2, "type"); err != nil {
			return nil, err
		} else if kind == "MOB" {
			return nil, &UnsupportedError{Reason: "compactions of type MOB: HBase has done them with the others since 2.5"}
		} else if kind != "" && kind != "NORMAL" {
			return nil, a.fail("the type is 'NORMAL'")
		}
		adm := s.Client.Admin()
		switch {
		case isRegionName(name):
			err = adm.CompactRegion(ctx, name, family, major)
		case major:
			err = adm.MajorCompact(ctx, name, family)
		default:
			err = adm.Compact(ctx, name, family)
		}
		return say(nil), err
	}
}

func runFlush(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	name, err := a.text(0, "table, region or server")
	if err != nil {
		return nil, err
	}
	family, err := a.optional(1, "family")
	if err != nil {
		return nil, err
	}
	adm := s.Client.Admin()
	if server, e := admin.ParseServerName(name); e == nil {
		if family != "" {
			return nil, a.fail("a region server is flushed as a whole")
		}
		return say(nil), adm.FlushServer(ctx, server)
	}
	switch {
	case isRegionName(name):
		err = adm.FlushRegion(ctx, name, family)
	case family != "":
		err = adm.FlushFamily(ctx, name, family)
	default:
		err = adm.Flush(ctx, name)
	}
	return say(nil), err
}

// server finds a live server by host,port,startcode or host:port.
func (s *Shell) server(ctx context.Context, name string) (hbase.ServerName, error) {
	live, err := s.Client.Admin().RegionServers(ctx)
	if err != nil {
		return hbase.ServerName{}, err
	}
	var all []string
	for _, sv := range live {
		if sv.String() == name || sv.Address() == name {
			return sv, nil
		}
		all = append(all, sv.String())
	}
	return hbase.ServerName{}, fmt.Errorf("no live region server %q; live are %s", name, strings.Join(all, " "))
}

func runMove(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	region, err := a.text(0, "region")
	if err != nil {
		return nil, err
	}
	var to hbase.ServerName
	if a.len() > 1 {
		name, err := a.text(1, "server")
		if err != nil {
			return nil, err
		}
		if to, err = s.server(ctx, name); err != nil {
			return nil, err
		}
	}
	return say(nil), s.Client.Admin().MoveRegion(ctx, region, to)
}

// isEncoded says whether the argument can only be an encoded region name or a
// full one, not a table.
func isRegionName(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == "" || strings.Contains(name, ",")
}

func runSplit(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	name, err := a.text(0, "table or region")
	if err != nil {
		return nil, err
	}
	var key []byte
	if a.len() > 1 {
		k, err := a.text(1, "split key")
		if err != nil {
			return nil, err
		}
		key = []byte(k)
	}
	if isRegionName(name) {
		return say(nil), s.Client.Admin().SplitRegion(ctx, name, key)
	}
	return say(nil), s.Client.Admin().SplitTable(ctx, name, key)
}

func runMerge(ctx context.Context, s *Shell, a args) (*answer, error) {
	force := false
	list := a.list
	if n := len(list); n > 0 {
		if b, ok := list[n-1].(bool); ok {
			force, list = b, list[:n-1]
		}
	}
	var regions []string
	for _, v := range list {
		switch v := v.(type) {
		case String:
			regions = append(regions, string(v))
		case []Value:
			for _, e := range v {
				regions = append(regions, fmt.Sprint(e))
			}
		default:
			return nil, a.fail("regions are given by their encoded names")
		}
	}
	if len(regions) < 2 {
		return nil, a.fail("at least two regions are needed")
	}
	return say(nil), s.Client.Admin().MergeRegions(ctx, regions, force)
}

func boolAnswer(b bool) *answer {
	ans := say(b, strconv.FormatBool(b))
	ans.value = strconv.FormatBool(b)
	return ans
}

func runBalancer(ctx context.Context, s *Shell, a args) (*answer, error) {
	var o admin.BalanceOptions
	for i := range a.list {
		word, err := a.text(i, "option")
		if err != nil {
			return nil, err
		}
		switch word {
		case "force", "ignore_rit":
			o.IgnoreTransitions = true
		case "dry_run":
			o.DryRun = true
		default:
			return nil, a.fail("Invalid argument %s.", word)
		}
	}
	r, err := s.Client.Admin().BalanceWith(ctx, o)
	if err != nil {
		return nil, err
	}
	ans := boolAnswer(r.Ran)
	if o.DryRun {
		ans = say(r, fmt.Sprintf("Planned %d moves", r.Planned))
	}
	return ans, nil
}

func runBalanceSwitch(ctx context.Context, s *Shell, a args) (*answer, error) {
	if a.len() != 1 {
		return nil, a.fail("true or false is needed")
	}
	on, ok := a.list[0].(bool)
	if !ok {
		return nil, a.fail("true or false is needed")
	}
	was, err := s.Client.Admin().SetBalancer(ctx, on)
	ans := boolAnswer(was)
	ans.lines = []string{"Previous balancer state : " + strconv.FormatBool(was)}
	return ans, err
}

func runBalancerEnabled(ctx context.Context, s *Shell, a args) (*answer, error) {
	on, err := s.Client.Admin().BalancerEnabled(ctx)
	return boolAnswer(on), err
}

// regionJSON is a region as -o json prints it.
type regionJSON struct {
	Name    string `json:"name"`
	Encoded string `json:"encoded"`
	Start   string `json:"start"`
	End     string `json:"end"`
	Server  string `json:"server"`
}

func regionOf(l admin.RegionLocation) regionJSON {
	server := ""
	if !l.Server.IsZero() {
		server = l.Server.String()
	}
	return regionJSON{l.Region.String(), l.Region.EncodedName(), hbase.Quote(l.Region.Start), hbase.Quote(l.Region.End), server}
}

func runLocate(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 2); err != nil {
		return nil, err
	}
	table, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	row, err := a.text(1, "row")
	if err != nil {
		return nil, err
	}
	loc, err := s.Client.Admin().Locate(ctx, table, []byte(row))
	if err != nil {
		return nil, err
	}
	r := regionOf(loc)
	return &answer{
		head:    []string{"HOST", "REGION"},
		rows:    [][]string{{loc.Server.Address(), fmt.Sprintf("{ENCODED => %s, NAME => '%s', STARTKEY => '%s', ENDKEY => '%s'}", r.Encoded, r.Name, r.Start, r.End)}},
		counted: 1, data: r,
	}, nil
}

func runListRegions(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	table, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	server, below := "", -1.0
	if a.len() > 1 {
		if _, isOptions := HashOf(a.list[1]); !isOptions {
			if server, err = a.text(1, "server"); err != nil {
				return nil, err
			}
		} else {
			o, err := a.options(1, "SERVER_NAME", "LOCALITY_THRESHOLD")
			if err != nil {
				return nil, err
			}
			server = o.text("SERVER_NAME")
			if o.has("LOCALITY_THRESHOLD") {
				below = o.fraction("LOCALITY_THRESHOLD")
			}
			if o.err != nil {
				return nil, o.err
			}
		}
	}
	regions, err := s.Client.Admin().Regions(ctx, table)
	if err != nil {
		return nil, err
	}
	var locality map[string]float32
	if below >= 0 {
		if locality, err = s.locality(ctx); err != nil {
			return nil, err
		}
	}
	ans := &answer{head: []string{"SERVER_NAME", "REGION_NAME", "START_KEY", "END_KEY"}}
	data := []regionJSON{}
	for _, l := range regions {
		r := regionOf(l)
		if !strings.HasPrefix(r.Server, server) {
			continue
		}
		if local, known := locality[string(l.Region.Name())]; below >= 0 && known && float64(local) >= below {
			continue
		}
		data = append(data, r)
		ans.rows = append(ans.rows, []string{r.Server, r.Name, r.Start, r.End})
	}
	ans.data, ans.counted = data, len(data)
	return ans, nil
}

// locality asks the master how much of each region's files lies on its server,
// by region name.
func (s *Shell) locality(ctx context.Context) (map[string]float32, error) {
	st, err := s.Client.Admin().ClusterStatus(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]float32{}
	for _, sv := range st.Live {
		for _, r := range sv.Regions {
			out[string(r.Name)] = r.Locality
		}
	}
	return out, nil
}

func runGetSplits(ctx context.Context, s *Shell, a args) (*answer, error) {
	table, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	regions, err := s.Client.Admin().Regions(ctx, table)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	for _, l := range regions {
		if len(l.Region.Start) > 0 {
			keys = append(keys, hbase.Quote(l.Region.Start))
		}
	}
	ans := say(keys, fmt.Sprintf("Total number of splits = %d", len(keys)+1))
	ans.value = rubyStrings(keys)
	return ans, nil
}

func runListServers(ctx context.Context, s *Shell, a args) (*answer, error) {
	live, err := s.Client.Admin().RegionServers(ctx)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, sv := range live {
		names = append(names, sv.String())
	}
	ans := say(names, names...)
	ans.counted = len(names)
	return ans, nil
}

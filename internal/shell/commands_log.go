package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func logCommands() []command {
	const filters = "REGION_NAME, TABLE_NAME, CLIENT_IP and USER filter: one of those given must hold, with FILTER_BY_OP => 'AND' all. LIMIT is how many a server gives at most, 10 if it is missing."
	return []command{
		{"get_slowlog_responses", "tools", "get_slowlog_responses '*'\nget_slowlog_responses '*', {'LIMIT' => 50}\nget_slowlog_responses ['host,port,startcode'], {'TABLE_NAME' => 't', 'USER' => 'u', 'FILTER_BY_OP' => 'AND'}",
			"Print the calls region servers remember as slow, latest first. " + filters, runSlowLog(false)},
		{"get_largelog_responses", "tools", "get_largelog_responses '*'\nget_largelog_responses ['host,port,startcode'], {'TABLE_NAME' => 't'}", "Print the calls whose answers region servers remember as large, latest first. " + filters, runSlowLog(true)},
		{"clear_slowlog_responses", "tools", "clear_slowlog_responses\nclear_slowlog_responses ['host,port,startcode']", "Empty the logs of slow and large calls.", runClearSlowLog},
		{"get_balancer_decisions", "tools", "get_balancer_decisions\nget_balancer_decisions LIMIT => 10", "Print the balancer's latest plans, if the master keeps them.", runDecisions},
		{"get_balancer_rejections", "tools", "get_balancer_rejections\nget_balancer_rejections LIMIT => 10", "Print the latest times the balancer found nothing to do, if the master keeps them.", runRejections},
		{"log_level", "tools", "log_level 'host:infoport', 'org.apache.hadoop.hbase.ipc'\nlog_level 'host,port,startcode', 'org.apache.hadoop.hbase.ipc', 'DEBUG'\nlog_level 'master', 'org.apache.hadoop.hbase'",
			"Print or set the level of a server's logger, at its web port. A server's name, or 'master', finds the port.", runLogLevel},
	}
}

// slowCallJSON has the names and the order of HBase's shell.
type slowCallJSON struct {
	Server         string `json:"server,omitempty"`
	StartTime      int64  `json:"startTime"`
	ProcessingTime int64  `json:"processingTime"`
	QueueTime      int64  `json:"queueTime"`
	ResponseSize   int64  `json:"responseSize"`
	ClientAddress  string `json:"clientAddress"`
	ServerClass    string `json:"serverClass"`
	MethodName     string `json:"methodName"`
	CallDetails    string `json:"callDetails"`
	Param          string `json:"param,omitempty"`
	UserName       string `json:"userName"`
	RegionName     string `json:"regionName,omitempty"`
	MultiGets      int    `json:"multiGetsCount,omitempty"`
	MultiMutations int    `json:"multiMutationsCount,omitempty"`
	MultiServices  int    `json:"multiServiceCalls,omitempty"`
	BlockBytes     int64  `json:"blockBytesScanned,omitempty"`
	FsReadTime     int64  `json:"fsReadTime,omitempty"`
}

func runSlowLog(large bool) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 2); err != nil {
			return nil, err
		}
		names, err := a.texts(0, "servers")
		if err != nil {
			return nil, err
		}
		q := admin.SlowLogQuery{Large: large}
		if len(names) != 1 || names[0] != "*" {
			if q.Servers, err = s.servers(ctx, names); err != nil {
				return nil, err
			}
		}
		o, err := a.options(1, "REGION_NAME", "TABLE_NAME", "CLIENT_IP", "CLIENT_ADDRESS", "USER", "LIMIT", "FILTER_BY_OP")
		if err != nil {
			return nil, err
		}
		q.Region, q.Table, q.User = o.text("REGION_NAME"), o.text("TABLE_NAME"), o.text("USER")
		q.Client = o.text("CLIENT_IP")
		if q.Client == "" {
			q.Client = o.text("CLIENT_ADDRESS")
		}
		q.Limit = o.count("LIMIT")
		switch strings.ToUpper(o.text("FILTER_BY_OP")) {
		case "", "OR":
		case "AND":
			q.MatchAll = true
		default:
			return nil, a.fail("FILTER_BY_OP is 'AND' or 'OR'")
		}
		if o.err != nil {
			return nil, o.err
		}
		calls, err := s.Client.Admin().SlowLog(ctx, q)
		if err != nil {
			return nil, err
		}
		kind := "SlowLog"
		if large {
			kind = "LargeLog"
		}
		data := []slowCallJSON{}
		ans := say(nil, "Retrieved "+kind+" Responses from RegionServers")
		for _, c := range calls {
			j := slowCallJSON{
				StartTime: c.Start.UnixMilli(), ProcessingTime: c.Processing.Milliseconds(), QueueTime: c.Queued.Milliseconds(), ResponseSize: c.ResponseBytes,
				ClientAddress: c.Client, ServerClass: c.ServerClass, MethodName: c.Method, CallDetails: c.Details, Param: c.Param, UserName: c.User,
				RegionName: c.Region, MultiGets: c.Gets, MultiMutations: c.Mutations, MultiServices: c.Services, BlockBytes: c.BlockBytesRead, FsReadTime: c.FileRead.Milliseconds(),
			}
			if err := ans.json(j); err != nil {
				return nil, err
			}
			j.Server = c.Server.String()
			data = append(data, j)
		}
		ans.data = data
		return ans, nil
	}
}

// json adds the lines of an indented document, as HBase's shell prints them.
func (a *answer) json(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	a.lines = append(a.lines, strings.Split(string(text), "\n")...)
	return nil
}

func runClearSlowLog(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 1); err != nil {
		return nil, err
	}
	var servers []hbase.ServerName
	if a.len() > 0 {
		names, err := a.texts(0, "servers")
		if err != nil {
			return nil, err
		}
		if servers, err = s.servers(ctx, names); err != nil {
			return nil, err
		}
	}
	cleared, err := s.Client.Admin().ClearSlowLog(ctx, servers...)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, yes := range cleared {
		if yes {
			n++
		}
	}
	return say(map[string]int{"cleared": n, "servers": len(cleared)}, fmt.Sprintf("Cleared Slowlog responses from %d/%d RegionServers", n, len(cleared))), nil
}

// limit reads LIMIT of the only argument.
func (a args) limit() (int, error) {
	if err := a.count(0, 1); err != nil {
		return 0, err
	}
	o, err := a.options(0, "LIMIT")
	if err != nil {
		return 0, err
	}
	n := int(o.integer("LIMIT", 1, math.MaxInt32))
	return n, o.err
}

func runDecisions(ctx context.Context, s *Shell, a args) (*answer, error) {
	limit, err := a.limit()
	if err != nil {
		return nil, err
	}
	list, err := s.Client.Admin().BalancerDecisions(ctx, limit)
	if err != nil {
		return nil, err
	}
	ans := say(list, "Retrieved BalancerDecision Responses")
	for _, d := range list {
		if err := ans.json(struct {
			InitialCosts string   `json:"initialFunctionCosts"`
			FinalCosts   string   `json:"finalFunctionCosts"`
			InitialTotal float64  `json:"initTotalCost"`
			FinalTotal   float64  `json:"computedTotalCost"`
			Steps        uint64   `json:"computedSteps"`
			Plans        []string `json:"regionPlans"`
		}{d.InitialCosts, d.FinalCosts, d.InitialTotal, d.FinalTotal, d.Steps, d.Plans}); err != nil {
			return nil, err
		}
	}
	return ans, nil
}

func runRejections(ctx context.Context, s *Shell, a args) (*answer, error) {
	limit, err := a.limit()
	if err != nil {
		return nil, err
	}
	list, err := s.Client.Admin().BalancerRejections(ctx, limit)
	if err != nil {
		return nil, err
	}
	ans := say(list, "Retrieved BalancerRejection Responses")
	for _, r := range list {
		if err := ans.json(struct {
			Reason string   `json:"reason"`
			Costs  []string `json:"costFuncInfo"`
		}{r.Reason, r.Costs}); err != nil {
			return nil, err
		}
	}
	return ans, nil
}

func runLogLevel(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 3); err != nil {
		return nil, err
	}
	server, err := a.text(0, "server")
	if err != nil {
		return nil, err
	}
	logger, err := a.text(1, "logger")
	if err != nil {
		return nil, err
	}
	level, err := a.optional(2, "level")
	if err != nil {
		return nil, err
	}
	address, err := s.webPort(ctx, server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var c admin.LogLevelClient
	var l admin.LogLevel
	if level == "" {
		l, err = c.Get(ctx, address, logger)
	} else {
		l, err = c.Set(ctx, address, logger, level)
	}
	if err != nil {
		return nil, err
	}
	return say(l, "Submitted Class Name: "+l.Logger, "Log Class: "+l.Class, "Effective Level: "+l.Level), nil
}

// webPort finds a server's web address: host:port is taken as it stands unless
// it is a region server's RPC address.
func (s *Shell) webPort(ctx context.Context, name string) (string, error) {
	adm := s.Client.Admin()
	if name == "master" {
		st, err := adm.ClusterStatusOf(ctx, admin.StatusMaster, admin.StatusInfoPort)
		if err != nil {
			return "", err
		}
		if st.MasterInfoPort <= 0 {
			return "", fmt.Errorf("master %v has no web port", st.Master)
		}
		return net.JoinHostPort(st.Master.Host, strconv.Itoa(st.MasterInfoPort)), nil
	}
	live, err := adm.RegionServers(ctx)
	if err != nil {
		return "", err
	}
	for _, sv := range live {
		if name != sv.String() && name != sv.Address() && name != sv.Host {
			continue
		}
		ports, err := adm.ServerInfo(ctx, sv)
		if err != nil {
			return "", err
		}
		if ports.Info <= 0 || ports.Info > math.MaxUint16 {
			return "", fmt.Errorf("region server %v has no web port", sv)
		}
		return net.JoinHostPort(sv.Host, strconv.Itoa(ports.Info)), nil
	}
	return name, nil
}

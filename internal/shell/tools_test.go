package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// moving is what differs between two runs of the commands below.
var moving = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000`), "CLOCK"},
	{regexp.MustCompile(`127\.0\.0\.1,\d+,\d+`), "SERVER"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST:PORT"},
	{regexp.MustCompile(`maxCacheSize=\d+`), "maxCacheSize=N"},
}

// TestToolCommands: what the real shell 2.4.17 printed on HBase 2.6.4, but for
// its exceptions and questions, is what these print.
func TestToolCommands(t *testing.T) {
	s := &Shell{Client: open(t), Quiet: true}
	var server string
	{
		live, err := s.Client.Admin().RegionServers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		server = live[0].String()
	}
	for _, step := range []struct{ line, want string }{
		{"create 'a1', {NAME => 'f', VERSIONS => 3}, SPLITS => ['g', 'n']", "Created table a1"},
		{"create 'a2', 'f'", "Created table a2"},
		{"put 'a1', 'a', 'f:q', 'v1'", ""},
		{"snapshot 'a1', 's1'", ""},
		{"snapshot 'a1', 's2', {SKIP_FLUSH => true}", ""},
		{"snapshot 'a2', 's3', {TTL => 86400, MAX_FILESIZE => 21474836480}", ""},
		{"snapshot 'a1', 's1'", "!Snapshot 's1' already stored on the filesystem."},
		{"snapshot 'a1', 's4', {TTL => 'x'}", "!TTL must be a whole number"},
		{"list_snapshots", "SNAPSHOT  TABLE + CREATION TIME\n s1 a1 (CLOCK)\n s2 a1 (CLOCK)\n s3 a2 (CLOCK)\n3 row(s)\n=> [\"s1\", \"s2\", \"s3\"]"},
		{"list_snapshots 'none.*'", "SNAPSHOT  TABLE + CREATION TIME\n0 row(s)\n=> []"},
		{"list_table_snapshots 'a.*', 's3'", "SNAPSHOT  TABLE + CREATION TIME\n s3 a2 (CLOCK)\n1 row(s)\n=> [\"s3\"]"},
		{"clone_snapshot 's1', 'a3'", ""},
		{"clone_snapshot 's1', 'a3'", "!table exists"},
		{"clone_snapshot 's1', 'a4', {RESTORE_ACL => true}", ""},
		{"clone_snapshot 'nope', 'a5'", "!doesn't exist"},
		{"restore_snapshot 's1'", "!table is not disabled"},
		{"disable 'a1'", ""},
		{"restore_snapshot 's1'", ""},
		{"enable 'a1'", ""},
		{"delete_snapshot 's3'", ""},
		{"delete_snapshot 'nope'", "!doesn't exist"},
		{"delete_table_snapshots 'a1', 'nope.*'", "SNAPSHOT  TABLE + CREATION TIME\nNo snapshots matched the table name regular expression a1 and the snapshot name regular expression nope.*"},
		{"delete_all_snapshot 'nope.*'", "SNAPSHOT  TABLE + CREATION TIME\nNo snapshots matched the regex nope.*"},
		{"delete_all_snapshot 's.*'", "SNAPSHOT  TABLE + CREATION TIME\n s1 a1 (CLOCK)\n s2 a1 (CLOCK)\n2 snapshots match. None is deleted yet: add {CONFIRM => true}"},
		{"delete_all_snapshot 's1', {CONFIRM => true}", "SNAPSHOT  TABLE + CREATION TIME\n s1 a1 (CLOCK)\n1 snapshots successfully deleted."},
		{"delete_table_snapshots 'a1', {CONFIRM => true}", "SNAPSHOT  TABLE + CREATION TIME\n s2 a1 (CLOCK)\n1 snapshots successfully deleted."},
		{"snapshot_cleanup_enabled", "true\n=> true"},
		{"snapshot_cleanup_switch false", "Previous snapshot cleanup state : true\n=> true"},
		{"snapshot_cleanup_switch 'true'", "Previous snapshot cleanup state : false\n=> false"},
		{"list_locks", "=> []"},
		{"abort_procedure 999999999", "false\n=> false"},
		{"abort_procedure -1", "!from 1 on"},
		{"catalogjanitor_enabled", "true\n=> true"},
		{"catalogjanitor_switch false", "true\n=> true"},
		{"catalogjanitor_switch true", "false\n=> false"},
		{"catalogjanitor_run", "=> 0"},
		{"cleaner_chore_enabled", "true\n=> true"},
		{"cleaner_chore_switch false", "true\n=> true"},
		{"cleaner_chore_switch true", "false\n=> false"},
		{"cleaner_chore_run", "=> true"},
		{"normalizer_enabled", "true\n=> true"},
		{"normalizer_switch true", "true\n=> true"},
		{"normalizer_switch maybe", "!true or false"},
		{"normalize", "true\n=> true"},
		{"normalize TABLE_NAME => 'a1'", "true\n=> true"},
		{"normalize REGEX => 'a.*', NAMESPACE => 'default'", "true\n=> true"},
		{"splitormerge_enabled 'SPLIT'", "true\n=> true"},
		{"splitormerge_switch 'SPLIT', false", "true\n=> true"},
		{"splitormerge_switch 'SPLIT', true", "false\n=> false"},
		{"splitormerge_enabled 'BOTH'", "!'SPLIT' or 'MERGE'"},
		{"balancer", "true\n=> true"},
		{"balancer 'force'", "true\n=> true"},
		{"balancer 'dry_run'", "Planned 0 moves"},
		{"balancer 'sideways'", "!Invalid argument sideways."},
		{"get_balancer_decisions", "Retrieved BalancerDecision Responses"},
		{"get_balancer_decisions LIMIT => 3", "Retrieved BalancerDecision Responses"},
		{"get_balancer_rejections", "Retrieved BalancerRejection Responses"},
		{"is_in_maintenance_mode", "false\n=> false"},
		{"list_deadservers", "SERVERNAME\n0 row(s)"},
		{"list_unknownservers", "SERVERNAME\n0 row(s)"},
		{"clear_deadservers", "true\n=> []"},
		{"clear_deadservers '127.0.0.1,1,1'", "Some dead server clear failed\nSERVERNAME\nSERVER\n1 row(s)\n=> [\"SERVER\"]"},
		{"list_decommissioned_regionservers", "DECOMMISSIONED REGION SERVERS\n0 row(s)"},
		{"decommission_regionservers 'SERVER', false", ""},
		{"list_decommissioned_regionservers", "DECOMMISSIONED REGION SERVERS\nSERVER\n1 row(s)"},
		{"recommission_regionserver 'SERVER'", ""},
		{"recommission_regionserver 'SERVER'", "!is not decommissioned"},
		{"compaction_switch false, 'SERVER'", "['SERVER'  'PREV_STATE']\n SERVER true\n1 row(s)"},
		{"compaction_switch true, 'SERVER'", "['SERVER'  'PREV_STATE']\n SERVER false\n1 row(s)"},
		{"compaction_switch true", "['SERVER'  'PREV_STATE']\n SERVER true\n SERVER true\n SERVER true\n3 row(s)"},
		{"clear_compaction_queues 'SERVER'", ""},
		{"clear_compaction_queues 'SERVER', ['long']", ""},
		{"clear_compaction_queues 'SERVER', ['wide']", "!neither long nor short"},
		{"compact_rs 'SERVER', true", ""},
		{"compact 'a1', 'f', 'NORMAL'", ""},
		{"compact 'a1', nil, 'MOB'", "!unsupported"},
		{"flush 'a1', 'f'", ""},
		{"flush 'SERVER'", ""},
		{"clear_block_cache 'a1'", "CacheEvictionStats{evictedBlocks=0, maxCacheSize=N, failedRegionsSize=0, failedRegions=[]}"},
		{"wal_roll 'SERVER'", ""},
		{"wal_roll 'nohost'", "!no live region server"},
		{"update_config 'SERVER'", ""},
		{"update_all_config", ""},
		{"get_slowlog_responses '*'", "Retrieved SlowLog Responses from RegionServers"},
		{"get_largelog_responses ['SERVER'], {'TABLE_NAME' => 'a1', 'FILTER_BY_OP' => 'AND'}", "Retrieved LargeLog Responses from RegionServers"},
		{"get_slowlog_responses '*', {'FILTER_BY_OP' => 'XOR'}", "!'AND' or 'OR'"},
		{"clear_slowlog_responses", "Cleared Slowlog responses from 0/3 RegionServers"},
		{"clear_slowlog_responses ['SERVER']", "Cleared Slowlog responses from 0/1 RegionServers"},
		{"alter_status 'a1'", "3/3 regions updated.\nDone."},
		{"alter_async 'a1', NAME => 'g'", ""},
		{"processlist", "No tasks"},
		{"processlist 'rpc'", "!unsupported"},
		{"trace 'start'", "!unsupported"},
		{"hbck_chore_run", "=> true"},
		{"log_level 'master', 'x'", "!has no web port"},
		{"log_level 'SERVER', 'x'", "!has no web port"},
		{"get_table 'a1'", "=> Hbase::Table - a1"},
		{"clone_table_schema 'a1', 'a6'", ""},
		{"get_splits 'a6'", "Total number of splits = 3\n=> [\"g\", \"n\"]"},
		{"drop 'a1'", "!table a1 is enabled; disable it first"},
		{"stop_master 1", "!at most 0"},
	} {
		var out bytes.Buffer
		s.Out = &out
		err := s.Run(t.Context(), strings.ReplaceAll(step.line, "'SERVER'", "'"+server+"'"))
		got := out.String()
		if wrong, ok := strings.CutPrefix(step.want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s\n got %v %q\nwant an error with %q", step.line, err, got, wrong)
			}
			continue
		}
		for _, m := range moving {
			got = m.re.ReplaceAllString(got, m.to)
		}
		if step.line[:6] == "create" {
			got, _, _ = strings.Cut(got, "\n=>")
		}
		if err != nil || strings.TrimSuffix(got, "\n") != step.want {
			t.Errorf("%s\n got %v %q\nwant %q", step.line, err, got, step.want)
		}
	}
	procs := run(t, s, "list_procedures")
	if !strings.HasPrefix(procs, " PID Name State Submitted Last_Update Parameters\n ") || !strings.Contains(procs, "CreateTableProcedure SUCCESS ") {
		t.Errorf("procedures: %s", procs)
	}
}

// TestTablesHaveNames: t = get_table 't', then t.put and the like.
func TestTablesHaveNames(t *testing.T) {
	s := &Shell{Client: open(t), Quiet: true}
	run(t, s, "t = create 'ns_t', 'f'")
	run(t, s, "t.put 'r', 'f:q', 'v'")
	if got := run(t, s, "t.count"); got != run(t, s, "count 'ns_t'") {
		t.Errorf("t.count: %q", got)
	}
	run(t, s, "u_2 = get_table 'ns_t'")
	if got := run(t, s, "u_2.get('r', 'f:q')"); !strings.Contains(got, "value=v") {
		t.Errorf("u_2.get: %q", got)
	}
	if got := run(t, s, "t.help 'scan'"); !strings.Contains(got, "scan 't'") {
		t.Errorf("t.help: %q", got)
	}
	var unknown *UnknownCommandError
	for _, line := range []string{"t.balancer", "t.scna", "v.scan"} {
		if err := s.Run(t.Context(), line); !errors.As(err, &unknown) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if err := s.Run(t.Context(), "t.scna"); !strings.Contains(err.Error(), "did you mean scan?") {
		t.Errorf("%v", err)
	}
	for _, line := range []string{"T = get_table 't'", "t = list", "t = get_table"} {
		if err := s.Run(t.Context(), line); err == nil {
			t.Errorf("%s was taken", line)
		}
	}
}

func TestCompletion(t *testing.T) {
	s := &Shell{Client: open(t), Quiet: true}
	run(t, s, "create 'orders', 'f'")
	run(t, s, "o = create 'orders_old', 'f'")
	for _, c := range []struct {
		line  string
		head  string
		words []string
	}{
		{"snapshot_c", "", []string{"snapshot_cleanup_enabled ", "snapshot_cleanup_switch "}},
		{"  balance_s", "  ", []string{"balance_switch "}},
		{"scan 'ord", "scan '", []string{"orders'", "orders_old'"}},
		{`get "orders_`, `get "`, []string{`orders_old"`}},
		{"scan 'nothing", "scan '", nil},
		{"scan 'orders', ", "scan 'orders', ", nil},
		{"o.disa", "o.", []string{"disable "}},
		{"x.disa", "x.disa", nil},
	} {
		head, words, tail := s.Complete(t.Context(), c.line, len(c.line))
		if head != c.head || tail != "" || !slices.Equal(words, c.words) {
			t.Errorf("%q: %q %q %q, want %q %q", c.line, head, words, tail, c.head, c.words)
		}
	}
	if _, words, tail := s.Complete(t.Context(), "scan 'orders_', {LIMIT => 1}", 13); !slices.Equal(words, []string{"orders_old"}) || tail != "', {LIMIT => 1}" {
		t.Errorf("in the middle: %q, %q", words, tail)
	}
	// Without a master there is no help, and no wait for long either.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, words, _ := (&Shell{Client: s.Client}).Complete(ctx, "scan '", 6); len(words) != 0 {
		t.Errorf("%q", words)
	}
}

// TestHelpOfEveryCommand: no verb is there twice, and each says something.
func TestHelpOfEveryCommand(t *testing.T) {
	seen := map[string]bool{}
	s := &Shell{Quiet: true}
	for _, c := range commands() {
		if seen[c.name] {
			t.Errorf("%s is there twice", c.name)
		}
		seen[c.name] = true
		if got := run(t, s, "help '"+c.name+"'"); !strings.Contains(got, c.name) || !strings.HasSuffix(c.about, ".") {
			t.Errorf("help %s: %q", c.name, got)
		}
	}
}

func TestZKDump(t *testing.T) {
	c := open(t)
	s := &Shell{Client: c, Quiet: true}
	got := run(t, s, "zk_dump")
	for _, want := range []string{"HBase is rooted at /hbase", "Active master address: \n 127.0.0.1,", "Region server holding hbase:meta:\n 127.0.0.1,", "Quorum Server Statistics:\n 127.0.0.1:"} {
		if !strings.Contains(got, want) {
			t.Errorf("zk_dump has no %q:\n%s", want, got)
		}
	}

	// A server's answer, and what is none.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			word := make([]byte, 4)
			if _, err := io.ReadFull(c, word); err == nil && string(word) == "stat" && n == 0 {
				io.WriteString(c, "Zookeeper version: 3.8.4\nMode: standalone\n")
			}
			c.Close()
		}
	}()
	if text, err := zkStat(t.Context(), l.Addr().String()); text != "Zookeeper version: 3.8.4\nMode: standalone" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := zkStat(t.Context(), l.Addr().String()); err == nil {
		t.Errorf("%q", text)
	}
}

func TestLogLevelCommand(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		level := r.FormValue("level")
		if level == "" {
			level = "INFO"
		}
		io.WriteString(w, "<html><!-- OUTPUT -->Submitted Class Name: <b>"+r.FormValue("log")+"</b><br />\n<!-- OUTPUT -->Log Class: <b>org.X</b><br />\n<!-- OUTPUT -->Effective Level: <b>"+level+"</b><br />\n</html>")
	}))
	defer page.Close()
	address := strings.TrimPrefix(page.URL, "http://")
	s := &Shell{Client: open(t), Quiet: true}
	if got := run(t, s, "log_level '"+address+"', 'a.b'"); got != "Submitted Class Name: a.b\nLog Class: org.X\nEffective Level: INFO\n" {
		t.Errorf("%q", got)
	}
	if got := run(t, s, "log_level '"+address+"', 'a.b', 'debug'"); !strings.HasSuffix(got, "Effective Level: DEBUG\n") {
		t.Errorf("%q", got)
	}
	if err := s.Run(t.Context(), "log_level '"+address+"', 'a.b', 'loud'"); !errors.Is(err, hbase.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

package shell

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/registry"
)

func miscCommands() []command {
	return []command{
		{"get_table", "tables", "get_table 't'\nt = get_table 't'\nt.scan", "Give a table a name for this session; see table_help.", runGetTable},
		{"table_help", "general", "table_help", "Say how to use a name for a table.", runTableHelp},
		{"zk_dump", "tools", "zk_dump", "Print what ZooKeeper holds of the cluster, and how its servers are.", runZKDump},
		{"trace", "tools", "trace", "Not supported: HBase's tracing went to HTrace, which is gone. `holdfast retry trace` shows a call with every attempt and wait.", unsupported("trace: HTrace is gone; `holdfast retry trace` shows a call with every attempt and wait")},
	}
}

func runGetTable(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	table, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	ans := say(table)
	ans.value = "Hbase::Table - " + table
	return ans, nil
}

const tableHelp = `A table can have a name for this session:

  t = create 't', 'f'
  t = get_table 't'

Every command that takes a table first can then be called on it, without it:

  t.put 'r', 'f:q', 'v'
  t.scan
  t.get 'r'
  t.describe
  t.disable
  t.drop
  t.help 'scan'

A name begins with a lower-case letter. It stands for the table's name, so it
goes on working if the table is dropped and made again.`

func runTableHelp(_ context.Context, _ *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	return say(tableHelp, strings.Split(tableHelp, "\n")...), nil
}

// tableVerbs are the commands a table's name can be given to: those whose first
// argument is a table.
func tableVerbs() []string {
	return []string{
		"alter", "alter_async", "alter_status", "append", "clear_block_cache", "clone_table_schema", "compact", "compaction_state", "count", "delete", "deleteall",
		"describe", "disable", "drop", "enable", "exists", "flush", "get", "get_counter", "get_splits", "get_table_rsgroup", "incr", "is_disabled",
		"is_enabled", "list_regions", "list_table_snapshots", "locate_region", "major_compact", "put", "scan", "snapshot", "split", "truncate", "truncate_preserve",
	}
}

// assignment takes `name = command ...` apart, if the command gives a table.
func assignment(line string) (name, rest string, ok bool) {
	name, rest, ok = strings.Cut(line, "=")
	if !ok {
		return "", line, false
	}
	name, rest = strings.TrimSpace(name), strings.TrimSpace(rest)
	if !isVariable(name) {
		return "", line, false
	}
	verb, _, _ := strings.Cut(rest, " ")
	verb, _, _ = strings.Cut(verb, "(")
	if verb != "get_table" && verb != "create" {
		return "", line, false
	}
	return name, rest, true
}

// isVariable says whether a word can name a table: as Ruby's variables.
func isVariable(word string) bool {
	for i, r := range word {
		if r >= 'a' && r <= 'z' || r == '_' || i > 0 && (r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			continue
		}
		return false
	}
	return word != ""
}

// onName turns `name.verb args` into the verb with the table as its first
// argument; other lines stay as they are.
func (s *Shell) onName(line string) (string, error) {
	line = strings.TrimSpace(line)
	name, rest, ok := strings.Cut(line, ".")
	if !ok || !isVariable(name) {
		return line, nil
	}
	table, known := s.tables[name]
	if !known {
		return line, nil
	}
	end := strings.IndexAny(rest, " \t(")
	if end < 0 {
		end = len(rest)
	}
	verb, list := rest[:end], strings.TrimSpace(rest[end:])
	if verb == "help" {
		return strings.TrimSpace("help " + list), nil
	}
	if !contains(tableVerbs(), verb) {
		return "", &UnknownCommandError{Name: name + "." + verb, Near: strings.TrimSuffix(strings.TrimPrefix(didYouMean(verb, tableVerbs()), " (did you mean "), "?)")}
	}
	if strings.HasPrefix(list, "(") && strings.HasSuffix(list, ")") {
		list = strings.TrimSpace(list[1 : len(list)-1])
	}
	line = verb + " " + quoteRuby(table)
	if list != "" {
		line += ", " + list
	}
	return line, nil
}

// quoteRuby writes a table's name as a literal.
func quoteRuby(name string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "'"
}

// zkTimeout bounds a question to one ZooKeeper server, maxZKAnswer its answer.
const (
	zkTimeout   = 5 * time.Second
	maxZKAnswer = 64 << 10
)

func runZKDump(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	address, err := registry.Parse(s.Client.Config().Address)
	if err != nil {
		return nil, err
	}
	if address.Kind != registry.ZooKeeper {
		return nil, &UnsupportedError{Reason: "zk_dump: this client was told masters, not a ZooKeeper ensemble"}
	}
	adm := s.Client.Admin()
	st, err := adm.ClusterStatus(ctx)
	if err != nil {
		return nil, err
	}
	meta, err := adm.Regions(ctx, "hbase:meta")
	if err != nil {
		return nil, err
	}
	var out []string
	line := func(format string, v ...any) { out = append(out, fmt.Sprintf(format, v...)) }
	line("HBase is rooted at %s", address.ZNodeParent)
	line("Active master address: ")
	line(" %s", st.Master)
	line("Backup master addresses:")
	for _, b := range st.Backups {
		line(" %s", b)
	}
	line("Region server holding hbase:meta:")
	for _, m := range meta {
		line(" %s", m.Server)
	}
	line("Region servers:")
	for _, sv := range st.Live {
		line(" %s", sv.Server)
	}
	line("Quorum Server Statistics:")
	stats := map[string]string{}
	for _, server := range address.Servers {
		line(" %s", server)
		text, err := zkStat(ctx, server)
		if err != nil {
			text = err.Error()
		}
		stats[server] = text
		for l := range strings.Lines(text) {
			line("  %s", strings.TrimRight(l, "\r\n"))
		}
	}
	return say(map[string]any{"root": address.ZNodeParent, "master": st.Master.String(), "quorum": stats}, out...), nil
}

// zkStat asks a ZooKeeper server for its statistics, by the four-letter word
// stat.
func zkStat(ctx context.Context, server string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, zkTimeout)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", server)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if end, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(end); err != nil {
			return "", err
		}
	}
	if _, err := c.Write([]byte("stat")); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(c, maxZKAnswer))
	if err != nil {
		return "", err
	}
	if len(text) == 0 {
		return "", fmt.Errorf("no answer to stat")
	}
	return strings.TrimRight(string(text), "\n"), nil
}

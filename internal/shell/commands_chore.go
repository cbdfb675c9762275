package shell

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func choreCommands() []command {
	return []command{
		{"normalizer_enabled", "tools", "normalizer_enabled", "Say whether the region normalizer is on.", askSwitch((*admin.Admin).NormalizerEnabled)},
		{"normalizer_switch", "tools", "normalizer_switch true", "Switch the region normalizer; prints what it was before.", setSwitch("", (*admin.Admin).SetNormalizer)},
		{"normalize", "tools", "normalize\nnormalize TABLE_NAME => 't'\nnormalize TABLE_NAMES => ['t', 'u']\nnormalize REGEX => 'user.*', NAMESPACE => 'ns'",
			"Run the region normalizer once, on all tables that ask for it or on those of them that are chosen; prints whether it ran.", runNormalize},
		{"catalogjanitor_enabled", "tools", "catalogjanitor_enabled", "Say whether the catalog janitor is on.", askSwitch((*admin.Admin).CatalogJanitorEnabled)},
		{"catalogjanitor_switch", "tools", "catalogjanitor_switch true", "Switch the catalog janitor; prints what it was before.", setSwitch("", (*admin.Admin).SetCatalogJanitor)},
		{"catalogjanitor_run", "tools", "catalogjanitor_run", "Run the catalog janitor once; prints how many regions it cleaned, -1 if it did not run.", runCatalogJanitor},
		{"cleaner_chore_enabled", "tools", "cleaner_chore_enabled", "Say whether the cleaner chore is on.", askSwitch((*admin.Admin).CleanerChoreEnabled)},
		{"cleaner_chore_switch", "tools", "cleaner_chore_switch true", "Switch the cleaner chore; prints what it was before.", setSwitch("", (*admin.Admin).SetCleanerChore)},
		{"cleaner_chore_run", "tools", "cleaner_chore_run", "Delete old logs and archived files nobody needs; prints whether it ran.", runCleanerChore},
		{"splitormerge_enabled", "tools", "splitormerge_enabled 'SPLIT'\nsplitormerge_enabled 'MERGE'", "Say whether splits or merges are on.", runSplitOrMergeEnabled},
		{"hbck_chore_run", "tools", "hbck_chore_run", "Make the master look for inconsistencies; prints whether it ran. What it finds is on the master's page /hbck.jsp.", runHbckChore},
		{"list_procedures", "procedures & locks", "list_procedures", "Print the master's procedures, running ones and those that ended lately.", runProcedures},
		{"list_locks", "procedures & locks", "list_locks", "Print the locks of the master's procedures, and what waits for them.", runLocks},
		{"abort_procedure", "procedures & locks", "abort_procedure 42\nabort_procedure 42, false", "Ask the master to undo a procedure; prints whether that was accepted. false leaves the step it is in alone.", runAbortProcedure},
		{"alter_async", "tables", "alter_async 't', NAME => 'f', VERSIONS => 5", "Like alter, without waiting for the regions; see alter_status.", runAlterAsync},
		{"alter_status", "tables", "alter_status 't'", "Print how many regions have the table's present schema.", runAlterStatus},
	}
}

func runNormalize(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 1); err != nil {
		return nil, err
	}
	o, err := a.options(0, "TABLE_NAME", "TABLE_NAMES", "REGEX", "NAMESPACE")
	if err != nil {
		return nil, err
	}
	f := admin.NormalizeFilter{Tables: append(o.texts("TABLE_NAMES"), o.texts("TABLE_NAME")...), Pattern: o.text("REGEX"), Namespace: o.text("NAMESPACE")}
	if o.err != nil {
		return nil, o.err
	}
	ran, err := s.Client.Admin().Normalize(ctx, f)
	if err != nil {
		return nil, err
	}
	return boolAnswer(ran), nil
}

func runCatalogJanitor(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	n, err := s.Client.Admin().RunCatalogJanitor(ctx)
	if err != nil {
		return nil, err
	}
	ans := say(n)
	ans.value = strconv.Itoa(n)
	return ans, nil
}

func runCleanerChore(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	ran, err := s.Client.Admin().RunCleanerChore(ctx)
	if err != nil {
		return nil, err
	}
	ans := say(ran)
	ans.value = strconv.FormatBool(ran)
	return ans, nil
}

func runHbckChore(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	ran, err := s.Client.Admin().Hbck().RunChore(ctx)
	if err != nil {
		return nil, err
	}
	ans := say(ran)
	ans.value = strconv.FormatBool(ran)
	return ans, nil
}

func runSplitOrMergeEnabled(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	which, err := a.text(0, "switch")
	if err != nil {
		return nil, err
	}
	call := (*admin.Admin).SplitsEnabled
	switch strings.ToUpper(which) {
	case "SPLIT":
	case "MERGE":
		call = (*admin.Admin).MergesEnabled
	default:
		return nil, a.fail("the switch is 'SPLIT' or 'MERGE'")
	}
	on, err := call(s.Client.Admin(), ctx)
	if err != nil {
		return nil, err
	}
	return boolAnswer(on), nil
}

func runProcedures(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	list, err := s.Client.Admin().Procedures(ctx)
	if err != nil {
		return nil, err
	}
	rows, data := [][]string{}, []procedureJSON{}
	for _, p := range list {
		var parts []string
		for _, m := range p.Parameters {
			parts = append(parts, strings.TrimPrefix(m.Type, "hbase.pb."))
		}
		j := procedureJSON{ID: p.ID, Parent: p.Parent, Name: p.Class, State: p.State.String(), Owner: p.Owner, Submitted: p.Submitted.UTC(), Updated: p.Updated.UTC(), Parameters: parts}
		if p.Err != nil {
			j.Error = p.Err.Error()
			parts = append(parts, j.Error)
		}
		data = append(data, j)
		rows = append(rows, []string{strconv.FormatUint(p.ID, 10), p.Class, p.State.String(), clock(p.Submitted), clock(p.Updated), "[" + strings.Join(parts, ", ") + "]"})
	}
	return rowsAnswer(data, []string{"PID", "Name", "State", "Submitted", "Last_Update", "Parameters"}, rows), nil
}

// procedureJSON is a procedure as -o json prints it.
type procedureJSON struct {
	ID         uint64    `json:"id"`
	Parent     uint64    `json:"parent,omitempty"`
	Name       string    `json:"name"`
	State      string    `json:"state"`
	Owner      string    `json:"owner,omitempty"`
	Submitted  time.Time `json:"submitted"`
	Updated    time.Time `json:"updated"`
	Parameters []string  `json:"parameters,omitempty"`
	Error      string    `json:"error,omitempty"`
}

func runLocks(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	list, err := s.Client.Admin().Locks(ctx)
	if err != nil {
		return nil, err
	}
	ans := say(list)
	for _, l := range list {
		ans.lines = append(ans.lines, fmt.Sprintf("%s(%s)", l.Kind, l.Resource))
		switch {
		case l.Exclusive && l.Owner != nil:
			ans.lines = append(ans.lines, "Lock type: EXCLUSIVE, procedure: "+l.Owner.String())
		case l.Exclusive:
			ans.lines = append(ans.lines, "Lock type: EXCLUSIVE")
		default:
			ans.lines = append(ans.lines, fmt.Sprintf("Lock type: SHARED, count: %d", l.Shared))
		}
		for _, w := range l.Waiting {
			ans.lines = append(ans.lines, "Waiting: "+w.String())
		}
		ans.lines = append(ans.lines, "")
	}
	if len(list) == 0 {
		ans.value = "[]"
	}
	return ans, nil
}

func runAbortProcedure(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	id, err := a.integer(0, "procedure")
	if err != nil {
		return nil, err
	}
	if id <= 0 {
		return nil, a.fail("a procedure's id is a number from 1 on")
	}
	interrupt := true
	if a.len() > 1 {
		if interrupt, err = a.boolean(1, 2); err != nil {
			return nil, err
		}
	}
	ok, err := s.Client.Admin().AbortProcedure(ctx, uint64(id), interrupt)
	if err != nil {
		return nil, err
	}
	return boolAnswer(ok), nil
}

func runAlterAsync(ctx context.Context, s *Shell, a args) (*answer, error) {
	return alter(ctx, s.Client.Admin().Detached(func(uint64) {}), a)
}

func runAlterStatus(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	table, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	st, err := s.Client.Admin().AlterStatus(ctx, table)
	if err != nil {
		return nil, err
	}
	ans := say(map[string]int{"updated": st.Updated, "total": st.Total}, fmt.Sprintf("%d/%d regions updated.", st.Updated, st.Total))
	if st.Updated == st.Total {
		ans.lines = append(ans.lines, "Done.")
	}
	return ans, nil
}

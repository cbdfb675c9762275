package shell

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func snapshotCommands() []command {
	return []command{
		{"snapshot", "snapshots", "snapshot 't', 's'\nsnapshot 't', 's', {SKIP_FLUSH => true}\nsnapshot 't', 's', {TTL => 86400, MAX_FILESIZE => 21474836480}",
			"Take a snapshot of a table. SKIP_FLUSH leaves out what is in memory only; TTL is how many seconds it is kept; MAX_FILESIZE is that of tables cloned from it.", runSnapshot},
		{"list_snapshots", "snapshots", "list_snapshots\nlist_snapshots 'nightly.*'", "Print the snapshots, or those whose whole name matches an expression.", runListSnapshots},
		{"list_table_snapshots", "snapshots", "list_table_snapshots 't'\nlist_table_snapshots 'user.*', 'nightly.*'", "Print the snapshots of tables whose whole name matches an expression, and which match another one themselves.", runListTableSnapshots},
		{"clone_snapshot", "snapshots", "clone_snapshot 's', 't'\nclone_snapshot 's', 't', {RESTORE_ACL => true}\nclone_snapshot 's', 't', {CLONE_SFT => 'FILE'}",
			"Make a new table from a snapshot. RESTORE_ACL gives it the permissions kept there, CLONE_SFT another store file tracker.", runCloneSnapshot},
		{"restore_snapshot", "snapshots", "restore_snapshot 's'\nrestore_snapshot 's', {RESTORE_ACL => true}", "Set a disabled table back to a snapshot. A snapshot of what it is now is taken first, and used if that fails.", runRestoreSnapshot},
		{"delete_snapshot", "snapshots", "delete_snapshot 's'", "Delete a snapshot.", runDeleteSnapshot},
		{"delete_all_snapshot", "snapshots", "delete_all_snapshot 'nightly.*'\ndelete_all_snapshot 'nightly.*', {CONFIRM => true}", "Delete the snapshots whose whole name matches an expression. Without CONFIRM they are only listed.", runDeleteSnapshots(false)},
		{"delete_table_snapshots", "snapshots", "delete_table_snapshots 't'\ndelete_table_snapshots 'user.*', 'nightly.*', {CONFIRM => true}", "Delete the snapshots of tables that match an expression, and which match another one themselves. Without CONFIRM they are only listed.", runDeleteSnapshots(true)},
		{"snapshot_cleanup_enabled", "snapshots", "snapshot_cleanup_enabled", "Say whether snapshots whose TTL has passed are deleted.", askSwitch((*admin.Admin).SnapshotCleanupEnabled)},
		{"snapshot_cleanup_switch", "snapshots", "snapshot_cleanup_switch true", "Switch the deletion of snapshots whose TTL has passed; prints what it was before.", setSwitch("Previous snapshot cleanup state : ", (*admin.Admin).SetSnapshotCleanup)},
	}
}

// UnsupportedError is a command of HBase's shell that this one will not do.
type UnsupportedError struct{ Reason string }

func (e *UnsupportedError) Error() string { return "unsupported: " + e.Reason }

func unsupported(reason string) func(context.Context, *Shell, args) (*answer, error) {
	return func(context.Context, *Shell, args) (*answer, error) { return nil, &UnsupportedError{Reason: reason} }
}

func runSnapshot(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 3); err != nil {
		return nil, err
	}
	table, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	name, err := a.text(1, "snapshot")
	if err != nil {
		return nil, err
	}
	o, err := a.options(2, "SKIP_FLUSH", "TTL", "MAX_FILESIZE")
	if err != nil {
		return nil, err
	}
	opt := admin.SnapshotOptions{
		TTL: time.Duration(o.integer("TTL", 0, math.MaxInt32)) * time.Second, MaxFileSize: o.integer("MAX_FILESIZE", 0, math.MaxInt64),
	}
	if o.flag("SKIP_FLUSH") {
		opt.Type = admin.SnapshotSkipFlush
	}
	if o.err != nil {
		return nil, o.err
	}
	return say(nil), s.Client.Admin().Snapshot(ctx, name, table, opt)
}

// snapshotJSON is a snapshot as -o json prints it.
type snapshotJSON struct {
	Name        string    `json:"name"`
	Table       string    `json:"table"`
	Created     time.Time `json:"created"`
	Type        string    `json:"type"`
	TTLSeconds  int64     `json:"ttlSeconds,omitempty"`
	MaxFileSize int64     `json:"maxFileSize,omitempty"`
	Owner       string    `json:"owner,omitempty"`
}

func snapshotAnswer(list []admin.Snapshot) *answer {
	names, data, rows := []string{}, []snapshotJSON{}, [][]string{}
	for _, s := range list {
		names = append(names, s.Name)
		rows = append(rows, []string{s.Name, fmt.Sprintf("%s (%s)", s.Table, clock(s.Created))})
		data = append(data, snapshotJSON{s.Name, s.Table.String(), s.Created.UTC(), s.Type.String(), int64(s.TTL / time.Second), s.MaxFileSize, s.Owner})
	}
	ans := rowsAnswer(data, []string{"SNAPSHOT", "TABLE + CREATION TIME"}, rows)
	ans.value = rubyStrings(names)
	return ans
}

// clock prints a time as Ruby does.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 -0700") }

func runListSnapshots(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 1); err != nil {
		return nil, err
	}
	pattern, err := a.optional(0, "expression")
	if err != nil {
		return nil, err
	}
	list, err := s.Client.Admin().ListSnapshots(ctx, pattern)
	if err != nil {
		return nil, err
	}
	return snapshotAnswer(list), nil
}

func runListTableSnapshots(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	tables, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	pattern, err := a.optional(1, "expression")
	if err != nil {
		return nil, err
	}
	list, err := s.Client.Admin().ListTableSnapshots(ctx, tables, pattern)
	if err != nil {
		return nil, err
	}
	return snapshotAnswer(list), nil
}

// optional gives argument i as a string, "" if there is none.
func (a args) optional(i int, what string) (string, error) {
	if i >= a.len() {
		return "", nil
	}
	return a.text(i, what)
}

func runCloneSnapshot(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 3); err != nil {
		return nil, err
	}
	name, err := a.text(0, "snapshot")
	if err != nil {
		return nil, err
	}
	table, err := a.text(1, "table")
	if err != nil {
		return nil, err
	}
	o, err := a.options(2, "RESTORE_ACL", "CLONE_SFT")
	if err != nil {
		return nil, err
	}
	opt := admin.CloneOptions{RestoreACL: o.flag("RESTORE_ACL"), StoreFileTracker: o.text("CLONE_SFT")}
	if o.err != nil {
		return nil, o.err
	}
	return say(nil), s.Client.Admin().CloneSnapshot(ctx, name, table, opt)
}

func runRestoreSnapshot(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	name, err := a.text(0, "snapshot")
	if err != nil {
		return nil, err
	}
	o, err := a.options(1, "RESTORE_ACL")
	if err != nil {
		return nil, err
	}
	opt := admin.RestoreOptions{RestoreACL: o.flag("RESTORE_ACL")}
	if o.err != nil {
		return nil, o.err
	}
	return say(nil), s.Client.Admin().RestoreSnapshot(ctx, name, opt)
}

func runDeleteSnapshot(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	name, err := a.text(0, "snapshot")
	if err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().DeleteSnapshot(ctx, name)
}

// runDeleteSnapshots lists what matches and deletes it once that is confirmed.
func runDeleteSnapshots(byTable bool) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		confirmed := false
		if n := a.len(); n > 0 {
			if _, isHash := HashOf(a.list[n-1]); isHash {
				o, err := a.options(n-1, "CONFIRM")
				if err != nil {
					return nil, err
				}
				if confirmed = o.flag("CONFIRM"); o.err != nil {
					return nil, o.err
				}
				a.list = a.list[:n-1]
			}
		}
		most := 1
		if byTable {
			most = 2
		}
		if err := a.count(1, most); err != nil {
			return nil, err
		}
		first, err := a.text(0, "expression")
		if err != nil {
			return nil, err
		}
		second, err := a.optional(1, "expression")
		if err != nil {
			return nil, err
		}
		table, name, what := "", first, "the regex "+first
		if byTable {
			table, name = first, second
			what = fmt.Sprintf("the table name regular expression %s and the snapshot name regular expression %s", first, second)
			if second == "" {
				what = "the table name regular expression " + first
			}
		}
		if first == "" {
			return nil, a.fail("the expression is empty")
		}
		adm := s.Client.Admin()
		list, err := adm.ListTableSnapshots(ctx, table, name)
		if err != nil {
			return nil, err
		}
		ans := snapshotAnswer(list)
		ans.counted, ans.value = -1, ""
		switch {
		case len(list) == 0:
			ans.lines = append(ans.lines, "No snapshots matched "+what)
		case !confirmed:
			ans.lines = append(ans.lines, fmt.Sprintf("%d snapshots match. None is deleted yet: add {CONFIRM => true}", len(list)))
		default:
			gone, err := adm.DeleteSnapshots(ctx, table, name)
			if err != nil {
				return nil, fmt.Errorf("%d of %d snapshots deleted: %w", len(gone), len(list), err)
			}
			ans = snapshotAnswer(gone)
			ans.counted, ans.value = -1, ""
			ans.lines = append(ans.lines, fmt.Sprintf("%d snapshots successfully deleted.", len(gone)))
		}
		return ans, nil
	}
}

// askSwitch makes a command of a call that says whether something is on.
func askSwitch(call func(*admin.Admin, context.Context) (bool, error)) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(0, 0); err != nil {
			return nil, err
		}
		on, err := call(s.Client.Admin(), ctx)
		if err != nil {
			return nil, err
		}
		return boolAnswer(on), nil
	}
}

// setSwitch makes a command of a call that switches something and says what it
// was, which is printed after a text.
func setSwitch(text string, call func(*admin.Admin, context.Context, bool) (bool, error)) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		on, err := a.boolean(0, 1)
		if err != nil {
			return nil, err
		}
		was, err := call(s.Client.Admin(), ctx, on)
		if err != nil {
			return nil, err
		}
		ans := boolAnswer(was)
		ans.lines = []string{text + strconv.FormatBool(was)}
		return ans, nil
	}
}

// boolean gives argument i, true or false, of n arguments.
func (a args) boolean(i, n int) (bool, error) {
	if a.len() != n {
		return false, a.fail("true or false is needed")
	}
	switch v := a.list[i].(type) {
	case bool:
		return v, nil
	case String:
		if b, err := strconv.ParseBool(string(v)); err == nil {
			return b, nil
		}
	}
	return false, a.fail("true or false is needed")
}

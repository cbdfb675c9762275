package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// SnapshotType is how a snapshot of a table is taken.
type SnapshotType uint8

// The types. A snapshot of a disabled table is always taken of its files.
const (
	// SnapshotFlush writes the memory of all regions to files first.
	SnapshotFlush SnapshotType = iota
	// SnapshotSkipFlush leaves out what is in memory only.
	SnapshotSkipFlush
	// SnapshotDisabled is of a disabled table.
	SnapshotDisabled
)

// String gives HBase's name.
func (t SnapshotType) String() string { return t.proto().String() }

func (t SnapshotType) proto() pb.SnapshotDescription_Type {
	switch t {
	case SnapshotSkipFlush:
		return pb.SnapshotDescription_SKIPFLUSH
	case SnapshotDisabled:
		return pb.SnapshotDescription_DISABLED
	}
	return pb.SnapshotDescription_FLUSH
}

func snapshotType(p pb.SnapshotDescription_Type) SnapshotType {
	switch p {
	case pb.SnapshotDescription_SKIPFLUSH:
		return SnapshotSkipFlush
	case pb.SnapshotDescription_DISABLED:
		return SnapshotDisabled
	}
	return SnapshotFlush
}

// Snapshot is a table as it was at one time.
type Snapshot struct {
	Name    string
	Table   TableName
	Created time.Time
	Type    SnapshotType
	// TTL is how long the master keeps it, if the snapshot cleanup is switched
	// on; 0 keeps it for ever.
	TTL time.Duration
	// MaxFileSize is the MAX_FILESIZE of tables cloned from it, in bytes; 0
	// takes the table's own.
	MaxFileSize int64
	Owner       string
}

// SnapshotOptions are how a snapshot is to be taken; the zero value is HBase's
// default.
type SnapshotOptions struct {
	Type SnapshotType
	// TTL: whole seconds; 0 takes the master's default,
	// hbase.master.snapshot.ttl (0, for ever). HBase 2.3 and later.
	TTL time.Duration
	// MaxFileSize becomes MAX_FILESIZE of tables cloned from the snapshot, so
	// that regions which had grown large are not all split at once; 0 leaves
	// the table's own. In bytes. HBase 2.3 and later.
	MaxFileSize int64
	// Owner is told by the snapshot; if empty the master takes the caller.
	Owner string
}

// Snapshot takes a snapshot of a table and returns when it is there. Rows
// written meanwhile may or may not be in it; within one region it is a point in
// time.
//
// ErrTableNotFound if there is no such table. The master's exceptions:
// SnapshotExistsException if the name is taken, SnapshotCreationException if
// another snapshot of the table is under way or its regions are not all open.
//
// HBase up to 2.5 knows no nonces here: if the answer to the request is lost,
// the error is ErrUnknownOutcome, and [Admin.IsSnapshotFinished] tells.
func (a *Admin) Snapshot(ctx context.Context, name, table string, o SnapshotOptions) error {
	const op = "snapshot"
	t, err := parseTable(op, table)
	if err != nil {
		return err
	}
	switch {
	case checkSnapshotName(op, name) != nil:
		return checkSnapshotName(op, name)
	case o.TTL < 0 || o.TTL%time.Second != 0:
		return invalid(op, ofSnapshot(name), fmt.Sprintf("has a TTL of %v; whole seconds from 0 on are right", o.TTL))
	case o.MaxFileSize < 0:
		return invalid(op, ofSnapshot(name), fmt.Sprintf("has a maximal file size of %d bytes", o.MaxFileSize))
	}
	// A master with the AccessController loaded aborts itself when it is asked
	// for a snapshot of a table that is not there (seen in HBase 2.6.4:
	// preSnapshot gets no descriptor, and an exception of another kind in a
	// coprocessor ends the server).
	exists, err := a.TableExists(ctx, table)
	if err != nil {
		return fault.Wrap(op, ofSnapshot(name), err)
	}
	if !exists {
		return &fault.Error{Op: op, Object: ofTable(t), Err: fault.ErrTableNotFound}
	}
	return a.snapshot(ctx, op, name, t, o)
}

func (a *Admin) snapshot(ctx context.Context, op, name string, t TableName, o SnapshotOptions) error {
	d := &pb.SnapshotDescription{Name: &name, Table: new(t.String()), Type: o.Type.proto().Enum()}
	if o.TTL > 0 {
		d.Ttl = new(int64(o.TTL / time.Second))
	}
	if o.MaxFileSize > 0 {
		d.MaxFileSize = &o.MaxFileSize
	}
	if o.Owner != "" {
		d.Owner = &o.Owner
	}
	ctx, cancel := bound(ctx, a.cfg.ProcedureTimeout)
	defer cancel()
	req := &pb.SnapshotRequest{Snapshot: d}
	req.NonceGroup, req.Nonce = a.nonces()
	var resp pb.SnapshotResponse
	if err := a.master(ctx, op, "Snapshot", req, &resp, session.Unsafe); err != nil {
		return fault.Wrap(op, ofSnapshot(name), err)
	}
	if id := resp.GetProcId(); id > 0 {
		_, err := a.wait(ctx, op, ofSnapshot(name), uint64(id))
		return err
	}
	return a.waitSnapshot(ctx, op, d)
}

// waitSnapshot asks until the snapshot is there: up to HBase 2.5 it is no
// procedure that could be asked for.
func (a *Admin) waitSnapshot(ctx context.Context, op string, d *pb.SnapshotDescription) error {
	if a.detached != nil {
		return nil
	}
	object := ofSnapshot(d.GetName())
	return a.poll(ctx, op, object, 0, func(ctx context.Context) (bool, error) {
		var resp pb.IsSnapshotDoneResponse
		err := a.master(ctx, op, "IsSnapshotDone", &pb.IsSnapshotDoneRequest{Snapshot: d}, &resp, session.Safe)
		return resp.GetDone(), err
	})
}

// IsSnapshotFinished says whether a snapshot that was asked for is there. If it
// failed the error is what it failed of; a name the master never heard of is an
// UnknownSnapshotException.
func (a *Admin) IsSnapshotFinished(ctx context.Context, name, table string) (bool, error) {
	const op = "snapshot finished"
	t, err := parseTable(op, table)
	if err != nil {
		return false, err
	}
	var resp pb.IsSnapshotDoneResponse
	err = a.master(ctx, op, "IsSnapshotDone", &pb.IsSnapshotDoneRequest{
		Snapshot: &pb.SnapshotDescription{Name: &name, Table: new(t.String())},
	}, &resp, session.Safe)
	return resp.GetDone(), fault.Wrap(op, ofSnapshot(name), err)
}

// ListSnapshots gives the completed snapshots whose whole names match the
// regular expression (Go's syntax, which has all of Java's but look-around and
// back references), sorted by name; "" gives all.
func (a *Admin) ListSnapshots(ctx context.Context, pattern string) ([]Snapshot, error) {
	return a.listSnapshots(ctx, "list snapshots", "", pattern)
}

// ListTableSnapshots is ListSnapshots for tables that match an expression.
func (a *Admin) ListTableSnapshots(ctx context.Context, tablePattern, pattern string) ([]Snapshot, error) {
	return a.listSnapshots(ctx, "list snapshots", tablePattern, pattern)
}

func (a *Admin) listSnapshots(ctx context.Context, op, tables, names string) ([]Snapshot, error) {
	table, err := wholeMatch(op, tables)
	if err != nil {
		return nil, err
	}
	name, err := wholeMatch(op, names)
	if err != nil {
		return nil, err
	}
	var resp pb.GetCompletedSnapshotsResponse
	if err := a.master(ctx, op, "GetCompletedSnapshots", &pb.GetCompletedSnapshotsRequest{}, &resp, session.Safe); err != nil {
		return nil, fault.Wrap(op, "", err)
	}
	out := []Snapshot{}
	for _, p := range resp.GetSnapshots() {
		if !name(p.GetName()) || !table(p.GetTable()) {
			continue
		}
		t, err := meta.ParseTableName(p.GetTable())
		if err != nil {
			return nil, fault.Wrap(op, ofSnapshot(p.GetName()), &fault.Unreadable{Err: err})
		}
		out = append(out, Snapshot{
			Name: p.GetName(), Table: t, Created: time.UnixMilli(p.GetCreationTime()), Type: snapshotType(p.GetType()),
			TTL: seconds(p.GetTtl()), MaxFileSize: p.GetMaxFileSize(), Owner: p.GetOwner(),
		})
	}
	slices.SortFunc(out, func(a, b Snapshot) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// seconds reads a number of seconds; what a Duration cannot hold, and HBase's
// own "for ever" (a negative one), is 0.
func seconds(n int64) time.Duration {
	if n < 0 || n > int64(1<<63-1)/int64(time.Second) {
		return 0
	}
	return time.Duration(n) * time.Second
}

// wholeMatch compiles an expression that a name must match as a whole; "" lets
// all pass.
func wholeMatch(op, pattern string) (func(string) bool, error) {
	if pattern == "" {
		return func(string) bool { return true }, nil
	}
	e, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil, invalid(op, "pattern "+strconv.Quote(pattern), err.Error())
	}
	return e.MatchString, nil
}

// DeleteSnapshot deletes a snapshot; files no other snapshot or table needs go
// with the next cleaner run. SnapshotDoesNotExistException if there is none.
func (a *Admin) DeleteSnapshot(ctx context.Context, name string) error {
	const op = "delete snapshot"
	if err := checkSnapshotName(op, name); err != nil {
		return err
	}
	err := a.slowMaster(ctx, op, "DeleteSnapshot", &pb.DeleteSnapshotRequest{
		Snapshot: &pb.SnapshotDescription{Name: &name},
	}, &pb.DeleteSnapshotResponse{}, session.Unsafe)
	return fault.Wrap(op, ofSnapshot(name), err)
}

// DeleteSnapshots deletes the snapshots that match both expressions (see
// [Admin.ListSnapshots]) and gives those it deleted. It goes on after a
// failure; the error joins all of them.
func (a *Admin) DeleteSnapshots(ctx context.Context, tablePattern, pattern string) ([]Snapshot, error) {
	const op = "delete snapshots"
	all, err := a.listSnapshots(ctx, op, tablePattern, pattern)
	if err != nil {
		return nil, err
	}
	var gone []Snapshot
	var errs []error
	for _, s := range all {
		if err := a.DeleteSnapshot(ctx, s.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		gone = append(gone, s)
	}
	return gone, errors.Join(errs...)
}

// CloneOptions are what a table made from a snapshot gets beside the data.
type CloneOptions struct {
	// RestoreACL gives it the permissions the snapshot holds.
	RestoreACL bool
	// StoreFileTracker names the tracker of the new table, if it is to be
	// another than the snapshot's: DEFAULT or FILE. HBase 2.5 and later.
	StoreFileTracker string
}

// CloneSnapshot makes a new table from a snapshot, with its schema and region
// boundaries; no data is copied. ErrTableExists if there is a table of that
// name.
func (a *Admin) CloneSnapshot(ctx context.Context, snapshot, table string, o CloneOptions) error {
	const op = "clone snapshot"
	if err := checkSnapshotName(op, snapshot); err != nil {
		return err
	}
	t, err := parseTable(op, table)
	if err != nil {
		return err
	}
	// The master has one call for clones and for restores and goes by whether
	// the table is there: without this question a clone would replace the data
	// of a disabled table.
	exists, err := a.TableExists(ctx, table)
	if err != nil {
		return fault.Wrap(op, ofSnapshot(snapshot), err)
	}
	if exists {
		return &fault.Error{Op: op, Object: ofTable(t), Err: fault.ErrTableExists}
	}
	if o.StoreFileTracker != "" {
		if err := a.needs(ctx, op, "a clone's own store file tracker", 2, 5); err != nil {
			return err
		}
	}
	return a.restore(ctx, op, snapshot, t, o.RestoreACL, o.StoreFileTracker)
}

func (a *Admin) restore(ctx context.Context, op, snapshot string, t TableName, acl bool, tracker string) error {
	req := &pb.RestoreSnapshotRequest{
		Snapshot: &pb.SnapshotDescription{Name: &snapshot, Table: new(t.String())}, RestoreACL: &acl,
	}
	if tracker != "" {
		req.CustomSFT = &tracker
	}
	req.NonceGroup, req.Nonce = a.nonces()
	err := a.run(ctx, op, ofSnapshot(snapshot)+" to "+ofTable(t), "RestoreSnapshot", req, &pb.RestoreSnapshotResponse{})
	a.core.Routes().InvalidateTable(t)
	return err
}

// RestoreOptions are how a table is set back to a snapshot.
type RestoreOptions struct {
	// RestoreACL sets its permissions back too.
	RestoreACL bool
	// NoFailsafe does without the snapshot that is otherwise taken of the
	// table before, to which it goes back if the restore fails
	// (hbase.snapshot.restore.take.failsafe.snapshot=false).
	NoFailsafe bool
	// FailsafeName is the name of that snapshot, in which {snapshot.name},
	// {table.name} and {restore.timestamp} are replaced; "" is
	// "hbase-failsafe-{snapshot.name}-{restore.timestamp}"
	// (hbase.snapshot.restore.failsafe.name).
	FailsafeName string
}

const defaultFailsafe = "hbase-failsafe-{snapshot.name}-{restore.timestamp}"

// RestoreSnapshot sets the table a snapshot is of back to it: rows, families,
// region boundaries. The table must be disabled (ErrTableNotDisabled) and stays
// so; if it no longer exists it is made, enabled. As Java's Admin does, it
// takes a snapshot of the table first and goes back to that if the restore
// fails: the error then is a [*RestoreError].
func (a *Admin) RestoreSnapshot(ctx context.Context, snapshot string, o RestoreOptions) error {
	const op = "restore snapshot"
	if err := checkSnapshotName(op, snapshot); err != nil {
		return err
	}
	list, err := a.listSnapshots(ctx, op, "", regexp.QuoteMeta(snapshot))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return &fault.Error{Op: op, Object: ofSnapshot(snapshot), Err: ErrNoSnapshot}
	}
	t := list[0].Table
	state, exists, err := a.tableState(ctx, op, t.String())
	if err != nil {
		return err
	}
	if !exists {
		return a.restore(ctx, op, snapshot, t, o.RestoreACL, "")
	}
	if state != Disabled {
		return &fault.Error{Op: op, Object: ofTable(t), Err: fault.ErrTableNotDisabled}
	}
	if o.NoFailsafe {
		return a.restore(ctx, op, snapshot, t, o.RestoreACL, "")
	}
	failsafe := strings.NewReplacer(
		"{snapshot.name}", snapshot, "{table.name}", strings.ReplaceAll(t.String(), ":", "."),
		"{restore.timestamp}", strconv.FormatInt(time.Now().UnixMilli(), 10),
	).Replace(cmp.Or(o.FailsafeName, defaultFailsafe))
	if err := checkSnapshotName(op, failsafe); err != nil {
		return err
	}
	// The steps build on each other, so none of them may be left running.
	b := *a
	b.detached = nil
	if err := b.snapshot(ctx, op, failsafe, t, SnapshotOptions{}); err != nil {
		return fault.Wrap(op, ofSnapshot(snapshot), fmt.Errorf("failsafe snapshot %q: %w", failsafe, err))
	}
	if err := b.restore(ctx, op, snapshot, t, o.RestoreACL, ""); err != nil {
		failed := &RestoreError{Snapshot: snapshot, Table: t, Failsafe: failsafe, Err: err}
		if failed.Rollback = b.restore(ctx, op, failsafe, t, o.RestoreACL, ""); failed.Rollback == nil {
			failed.Rollback = b.DeleteSnapshot(ctx, failsafe)
		}
		return failed
	}
	if err := b.DeleteSnapshot(ctx, failsafe); err != nil {
		return fault.Wrap(op, ofSnapshot(snapshot), fmt.Errorf("restored, but the failsafe snapshot %q is left: %w", failsafe, err))
	}
	return nil
}

// ErrNoSnapshot is a snapshot that does not exist.
var ErrNoSnapshot = errors.New("snapshot does not exist")

// RestoreError is a restore that failed after a failsafe snapshot was taken.
type RestoreError struct {
	Snapshot string
	Table    TableName
	// Failsafe is the snapshot taken before. If Rollback is nil the table was
	// set back to it and it was deleted; otherwise it is still there.
	Failsafe string
	Rollback error
	// Err is what the restore failed of.
	Err error
}

// Error tells both.
func (e *RestoreError) Error() string {
	after := "the table was set back to what it was"
	if e.Rollback != nil {
		after = fmt.Sprintf("going back failed too, snapshot %q holds what it was: %v", e.Failsafe, e.Rollback)
	}
	return fmt.Sprintf("restore snapshot %q of %s: %v; %s", e.Snapshot, ofTable(e.Table), e.Err, after)
}

// Unwrap gives what the restore failed of.
func (e *RestoreError) Unwrap() error { return e.Err }

// SetSnapshotCleanup switches the deletion of snapshots whose TTL has passed,
// and says what it was before. HBase 2.3 and later.
func (a *Admin) SetSnapshotCleanup(ctx context.Context, on bool) (was bool, err error) {
	const op = "snapshot cleanup switch"
	var resp pb.SetSnapshotCleanupResponse
	err = a.slowMaster(ctx, op, "SwitchSnapshotCleanup", &pb.SetSnapshotCleanupRequest{Enabled: &on, Synchronous: new(true)}, &resp, session.Safe)
	return resp.GetPrevSnapshotCleanup(), fault.Wrap(op, "", fault.Since(err, "SwitchSnapshotCleanup", "2.3 and later"))
}

// SnapshotCleanupEnabled says whether snapshots whose TTL has passed are
// deleted. HBase 2.3 and later.
func (a *Admin) SnapshotCleanupEnabled(ctx context.Context) (bool, error) {
	const op = "snapshot cleanup enabled"
	var resp pb.IsSnapshotCleanupEnabledResponse
	err := a.master(ctx, op, "IsSnapshotCleanupEnabled", &pb.IsSnapshotCleanupEnabledRequest{}, &resp, session.Safe)
	return resp.GetEnabled(), fault.Wrap(op, "", fault.Since(err, "IsSnapshotCleanupEnabled", "2.3 and later"))
}

func ofSnapshot(name string) string { return "snapshot " + strconv.Quote(name) }

// checkSnapshotName refuses what HBase refuses: snapshots are named as tables
// are, without a namespace.
func checkSnapshotName(op, name string) error {
	t, err := meta.ParseTableName(name)
	if err == nil && t.Qualifier != name {
		err = errors.New("a snapshot has no namespace")
	}
	if err != nil {
		return invalid(op, ofSnapshot(name), err.Error())
	}
	return nil
}

// poll asks until done says so, as wait does for procedures.
func (a *Admin) poll(ctx context.Context, op, object string, id uint64, done func(context.Context) (bool, error)) error {
	start := time.Now()
	pause := firstPoll
	for polls := 1; ; polls++ {
		ended, err := done(ctx)
		if err != nil {
			return fault.Wrap(op, object, err)
		}
		if a.progress != nil {
			a.progress(Progress{Op: op, Object: object, ProcID: id, Polls: polls, Elapsed: time.Since(start), Done: ended})
		}
		if ended {
			return nil
		}
		if err := sleep(ctx, pause/2+rand.N(pause/2+1)); err != nil {
			return fault.Wrap(op, object, fmt.Errorf("it is still running: %w", err))
		}
		pause = min(2*pause, lastPoll)
	}
}

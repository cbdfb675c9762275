package admin

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Quotas are read from the table hbase:quota, as HBase's own client does it
// (QuotaTableUtil): no call of the master lists them. A row is "u.USER",
// "t.TABLE", "n.NAMESPACE" or "r.all"; q:s holds its settings, q:s.TABLE and
// q:s.NAMESPACE: those of a user there; u:p is a table's state, u:ss.SNAPSHOT
// the size of a snapshot.
const (
	quotaTable       = "hbase:quota"
	quotaSettings    = "q"
	quotaUsage       = "u"
	quotaSnapshotCol = "ss"
)

// RowReader reads rows of a table between start (included) and stop (excluded)
// with cells of one family. Package hbase gives an Admin one.
type RowReader func(ctx context.Context, table TableName, family string, start, stop []byte) iter.Seq2[[]cells.Cell, error]

// Quota is one setting of a target: a throttle, a space quota or the bypass.
type Quota struct {
	QuotaTarget
	// One of these is set.
	Throttle     *Throttle
	Space        *SpaceQuota
	GlobalBypass bool
}

// String prints the setting, without its target, as HBase's list_quotas does.
func (q Quota) String() string {
	switch {
	case q.Throttle != nil:
		return q.Throttle.String()
	case q.Space != nil:
		target := q.QuotaTarget
		target.User = ""
		return fmt.Sprintf("TYPE => SPACE, %v, LIMIT => %s, VIOLATION_POLICY => %v", target, sizeText(q.Space.Limit), q.Space.Policy)
	}
	return "GLOBAL_BYPASS => " + strconv.FormatBool(q.GlobalBypass)
}

// QuotaFilter chooses quotas by regular expressions (Go's syntax, which is
// Java's but for look-arounds and back references) that must match whole
// names. As in HBase, User goes first: with it, Table and Namespace choose
// among the user's quotas; without it the first of Table, Namespace and
// RegionServer counts. The zero filter chooses all.
type QuotaFilter struct {
	User, Table, Namespace, RegionServer string
}

// compiled is a filter's expressions; nil ones are not set.
type quotaFilter struct{ user, table, namespace, server *regexp.Regexp }

func (f QuotaFilter) compile(op string) (quotaFilter, error) {
	var c quotaFilter
	for _, e := range []struct {
		text string
		to   **regexp.Regexp
	}{{f.User, &c.user}, {f.Table, &c.table}, {f.Namespace, &c.namespace}, {f.RegionServer, &c.server}} {
		if e.text == "" {
			continue
		}
		re, err := wholePattern(op, e.text)
		if err != nil {
			return c, err
		}
		*e.to = re
	}
	return c, nil
}

// wholePattern compiles an expression that must match all of a name.
func wholePattern(op, text string) (*regexp.Regexp, error) {
	re, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return nil, invalid(op, "pattern "+strconv.Quote(text), err.Error())
	}
	return re, nil
}

func (f quotaFilter) accepts(t QuotaTarget) bool {
	if f.user != nil {
		if t.User == "" || !f.user.MatchString(t.User) {
			return false
		}
		if f.table == nil && f.namespace == nil {
			return true
		}
		return f.table != nil && t.Table != "" && f.table.MatchString(t.Table) ||
			f.namespace != nil && t.Namespace != "" && f.namespace.MatchString(t.Namespace)
	}
	if f.table != nil || f.namespace != nil || f.server != nil {
		if t.User != "" {
			return false
		}
	}
	switch {
	case f.table != nil:
		return t.Table != "" && f.table.MatchString(t.Table)
	case f.namespace != nil:
		return t.Namespace != "" && f.namespace.MatchString(t.Namespace)
	case f.server != nil:
		return t.RegionServer != "" && f.server.MatchString(t.RegionServer)
	}
	return true
}

// ListQuotas lists quotas in the order of the table: namespaces, region
// servers, tables, users. The table hbase:quota must be readable; that it is
// not there means that quotas are not enabled (ErrUnsupported).
func (a *Admin) ListQuotas(ctx context.Context, filter QuotaFilter) ([]Quota, error) {
	const op = "list quotas"
	f, err := filter.compile(op)
	if err != nil {
		return nil, err
	}
	var out []Quota
	for row, err := range a.quotaRows(ctx, op, quotaSettings, nil, nil) {
		if err != nil {
			return nil, err
		}
		for i := range row {
			quotas, err := quotasOfCell(&row[i])
			if err != nil {
				return nil, fault.Wrap(op, quotaTable, err)
			}
			for _, q := range quotas {
				if f.accepts(q.QuotaTarget) {
					out = append(out, q)
				}
			}
		}
	}
	return out, nil
}

// quotaRows reads hbase:quota.
func (a *Admin) quotaRows(ctx context.Context, op, family string, start, stop []byte) iter.Seq2[[]cells.Cell, error] {
	return func(yield func([]cells.Cell, error) bool) {
		if a.cfg.Rows == nil {
			yield(nil, fault.Wrap(op, quotaTable, fmt.Errorf("%w: this Admin was made without a reader of tables", fault.ErrUnsupported)))
			return
		}
		ctx, cancel := bound(ctx, a.cfg.OperationTimeout)
		defer cancel()
		for row, err := range a.cfg.Rows(ctx, meta.TableName{Namespace: meta.SystemNamespace, Qualifier: "quota"}, family, start, stop) {
			if isMissingTable(err) {
				err = errNotSupported(op, "", "quotas are not enabled (hbase.quota.enabled)", err)
			}
			if !yield(row, fault.Wrap(op, quotaTable, err)) || err != nil {
				return
			}
		}
	}
}

// quotaTargetOf reads whom a cell of hbase:quota concerns; ok is false for rows
// and columns that are none of the settings.
func quotaTargetOf(row, qualifier []byte) (t QuotaTarget, ok bool) {
	kind, name, found := bytes.Cut(row, []byte("."))
	if !found || len(name) == 0 {
		return t, false
	}
	switch string(kind) {
	case "n":
		t.Namespace = string(name)
	case "t":
		t.Table = string(name)
	case "r":
		t.RegionServer = string(name)
	case "u":
		t.User = string(name)
		if of, ok := bytes.CutPrefix(qualifier, []byte("s.")); ok {
			if ns, ok := bytes.CutSuffix(of, []byte(":")); ok {
				t.Namespace = string(ns)
			} else {
				t.Table = string(of)
			}
			return t, len(of) > 0
		}
	default:
		return t, false
	}
	return t, string(qualifier) == "s"
}

func quotasOfCell(c *cells.Cell) ([]Quota, error) {
	target, ok := quotaTargetOf(c.Row, c.Qualifier)
	if !ok {
		return nil, nil
	}
	body, ok := bytes.CutPrefix(c.Value, []byte(meta.ProtoMagic))
	if !ok {
		return nil, fmt.Errorf("quota of %v: its value begins with no %s", target, meta.ProtoMagic)
	}
	var p pb.Quotas
	if err := p.UnmarshalVT(body); err != nil {
		return nil, fmt.Errorf("quota of %v: %w", target, err)
	}
	var out []Quota
	for _, t := range throttlesFromProto(p.GetThrottle()) {
		out = append(out, Quota{QuotaTarget: target, Throttle: &t})
	}
	if p.GetBypassGlobals() {
		out = append(out, Quota{QuotaTarget: target, GlobalBypass: true})
	}
	if s := p.GetSpace(); s != nil && !s.GetRemove() {
		out = append(out, Quota{QuotaTarget: target, Space: &SpaceQuota{Limit: int64(s.GetSoftLimit()), Policy: SpacePolicy(s.GetViolationPolicy())}})
	}
	return out, nil
}

// SpaceQuotaTables gives the state of the tables under a space quota as
// hbase:quota has it, which is what region servers act upon (Java:
// QuotaTableUtil.getSnapshots).
func (a *Admin) SpaceQuotaTables(ctx context.Context) (map[TableName]SpaceState, error) {
	const op = "list quota snapshots"
	out := map[TableName]SpaceState{}
	for row, err := range a.quotaRows(ctx, op, quotaUsage, []byte("t."), []byte("t/")) {
		if err != nil {
			return nil, err
		}
		for i := range row {
			c := &row[i]
			if string(c.Qualifier) != "p" {
				continue
			}
			t, err := meta.ParseTableName(strings.TrimPrefix(string(c.Row), "t."))
			if err != nil {
				return nil, fault.Wrap(op, quotaTable, err)
			}
			var p pb.SpaceQuotaSnapshot
			if err := p.UnmarshalVT(c.Value); err != nil {
				return nil, fault.Wrap(op, ofTable(t), err)
			}
			out[t] = spaceState(&p)
		}
	}
	return out, nil
}

// SnapshotSizes gives the bytes that each snapshot owns: those no table refers
// to any more. The master reckons it for tables and namespaces under a space
// quota only (Java: QuotaTableUtil.getObservedSnapshotSizes).
func (a *Admin) SnapshotSizes(ctx context.Context) (map[string]int64, error) {
	const op = "list snapshot sizes"
	out := map[string]int64{}
	for row, err := range a.quotaRows(ctx, op, quotaUsage, []byte("t."), []byte("t/")) {
		if err != nil {
			return nil, err
		}
		for i := range row {
			name, ok := bytes.CutPrefix(row[i].Qualifier, []byte(quotaSnapshotCol))
			if !ok || len(name) == 0 {
				continue
			}
			var p pb.SpaceQuotaSnapshot
			if err := p.UnmarshalVT(row[i].Value); err != nil {
				return nil, fault.Wrap(op, "snapshot "+strconv.Quote(string(name)), err)
			}
			out[string(name)] += int64(p.GetQuotaUsage())
		}
	}
	return out, nil
}

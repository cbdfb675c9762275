package admin

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func TestThrottlesAsTheShellWritesThem(t *testing.T) {
	for _, tt := range []struct {
		of, limit string
		want      Throttle
		text      string
	}{
		{"", "10req/sec", Throttle{RequestNumber, 10, time.Second, MachineScope}, "REQUEST_NUMBER, LIMIT => 10req/sec"},
		{"WRITE", "100M/min", Throttle{WriteSize, 100 << 20, time.Minute, MachineScope}, "WRITE_SIZE, LIMIT => 100.00M/min"},
		{"read", "1CU/hour", Throttle{ReadCapacityUnit, 1, time.Hour, MachineScope}, "READ_CAPACITY_UNIT, LIMIT => 1CU/hour"},
		{"REQUEST", "5p/day", Throttle{RequestSize, 5 << 50, 24 * time.Hour, MachineScope}, "REQUEST_SIZE, LIMIT => 5.00P/day"},
		{"", "900b/sec", Throttle{RequestSize, 900, time.Second, MachineScope}, "REQUEST_SIZE, LIMIT => 900.00B/sec"},
	} {
		got, err := ParseThrottle(tt.of, tt.limit)
		if err != nil || got != tt.want {
			t.Errorf("%s %s: %+v, %v", tt.of, tt.limit, got, err)
		}
		if want := "TYPE => THROTTLE, THROTTLE_TYPE => " + tt.text + ", SCOPE => MACHINE"; got.String() != want {
			t.Errorf("%s %s prints as %s, want %s", tt.of, tt.limit, got, want)
		}
	}
	for _, bad := range []string{"", "10", "10req", "10/sec", "req/sec", "0req/sec", "-1req/sec", "10req/week", "10req/msec", "10x/sec", "9999999999999999999req/sec", "9000000P/sec", "10req/sec/sec", "10bk/sec"} {
		if got, err := ParseThrottle("", bad); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %+v, %v; want ErrInvalid", bad, got, err)
		}
	}
	if _, err := ParseThrottle("SOME", "1req/sec"); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("an unknown kind: %v", err)
	}
	for text, want := range map[string]int64{"1500": 1500, "10M": 10 << 20, "2t": 2 << 40, "7b": 7} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "M", "1.5G", "10X", "-1"} {
		if got, err := ParseSize(bad); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %d, %v; want ErrInvalid", bad, got, err)
		}
	}
	for _, bad := range []Throttle{{}, {Type: RequestSize}, {Type: RequestSize, Limit: 1, Per: 2 * time.Second}, {Type: 99, Limit: 1}, {Type: ReadSize, Limit: 1, Scope: 7}} {
		if p, err := bad.toProto(); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v, %v; want ErrInvalid", bad, p, err)
		}
	}
}

// rowsOf is a reader of a table that holds just these rows.
func rowsOf(rows ...[]cells.Cell) RowReader {
	return func(context.Context, TableName, string, []byte, []byte) iter.Seq2[[]cells.Cell, error] {
		return func(yield func([]cells.Cell, error) bool) {
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

func cell(row, qualifier, value string) cells.Cell {
	return cells.Cell{Row: []byte(row), Qualifier: []byte(qualifier), Value: []byte(value)}
}

// The cells are those HBase 2.4.17 wrote.
func TestQuotaTable(t *testing.T) {
	a := New(nil, Config{OperationTimeout: time.Second, Rows: rowsOf(
		[]cells.Cell{cell("exceedThrottleQuota", "s", "\x00")},
		[]cells.Cell{cell("n.ns", "s", "PBUF\x12\x09\x12\x07\x08\x04\x10\x84\x07 \x02")},
		[]cells.Cell{cell("r.all", "s", "PBUF\x12\x0A\x0A\x08\x08\x04\x10\xB0\xEA\x01 \x02")},
		[]cells.Cell{cell("t.t", "s", "PBUF\x12\x08\x0A\x06\x08\x04\x10\x07 \x02\x1A\x08\x08\x80\x80\x80\x80\x04\x10\x04"), cell("t.t", "p", "\x0A\x02\x10\x00\x10\x00\x18\x80\x80\x80\x80\x04"), cell("t.t", "sssnap", "\x10\x07")},
		[]cells.Cell{cell("u.u1", "s", "PBUF\x08\x01"), cell("u.u1", "s.ns:", "PBUF\x12\x09\x12\x07\x08\x07\x10\x80( \x02"), cell("u.u1", "s.t", "PBUF\x12\x08J\x06\x08\x06\x10\x01 \x01")},
	)})
	quotas, err := a.ListQuotas(t.Context(), QuotaFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range quotas {
		got = append(got, q.QuotaTarget.String()+" "+q.String())
	}
	want := `NAMESPACE => ns TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 900.00B/sec, SCOPE => MACHINE
REGIONSERVER => all TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, LIMIT => 30000req/sec, SCOPE => MACHINE
TABLE => t TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, LIMIT => 7req/sec, SCOPE => MACHINE
TABLE => t TYPE => SPACE, TABLE => t, LIMIT => 1.00G, VIOLATION_POLICY => NO_INSERTS
USER => u1 GLOBAL_BYPASS => true
USER => u1, NAMESPACE => ns TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 5.00K/day, SCOPE => MACHINE
USER => u1, TABLE => t TYPE => THROTTLE, THROTTLE_TYPE => READ_CAPACITY_UNIT, LIMIT => 1CU/hour, SCOPE => CLUSTER`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	for f, want := range map[QuotaFilter]int{{User: "u."}: 3, {User: "u"}: 0, {Table: "t"}: 2, {Namespace: "n.*"}: 1, {RegionServer: "all"}: 1, {User: ".*", Table: "t"}: 1, {User: ".*", Table: "t", Namespace: "ns"}: 2, {Table: "t", Namespace: "ns"}: 2} {
		if qs, err := a.ListQuotas(t.Context(), f); err != nil || len(qs) != want {
			t.Errorf("%+v: %v, %v; want %d", f, qs, err, want)
		}
	}
	if _, err := a.ListQuotas(t.Context(), QuotaFilter{User: "("}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a bad pattern: %v", err)
	}
	states, err := a.SpaceQuotaTables(t.Context())
	if st := states[TableName{Namespace: "default", Qualifier: "t"}]; err != nil || len(states) != 1 || st != (SpaceState{Limit: 1 << 30}) {
		t.Errorf("%v, %v", states, err)
	}
	if sizes, err := a.SnapshotSizes(t.Context()); err != nil || len(sizes) != 1 || sizes["snap"] != 7 {
		t.Errorf("%v, %v", sizes, err)
	}
	for _, bad := range []cells.Cell{cell("t.t", "s", ""), cell("t.t", "s", "PBU"), cell("u.x", "s", "PBUF\xff")} {
		a := New(nil, Config{OperationTimeout: time.Second, Rows: rowsOf([]cells.Cell{bad})})
		if qs, err := a.ListQuotas(t.Context(), QuotaFilter{}); err == nil {
			t.Errorf("%q was read as %v", bad.Value, qs)
		}
	}
}

func FuzzQuotaCell(f *testing.F) {
	f.Add([]byte("u.u1"), []byte("s.t"), []byte("PBUF\x12\x08J\x06\x08\x06\x10\x01 \x01"))
	f.Add([]byte("t.t"), []byte("s"), []byte("PBUF\x1A\x08\x08\x80\x80\x80\x80\x04\x10\x04"))
	f.Fuzz(func(t *testing.T, row, qualifier, value []byte) {
		quotas, err := quotasOfCell(&cells.Cell{Row: row, Qualifier: qualifier, Value: value})
		if err != nil {
			return
		}
		for _, q := range quotas {
			if q.String() == "" || q.QuotaTarget.String() == "" {
				t.Errorf("%q %q: %+v prints as nothing", row, qualifier, q)
			}
		}
	})
}

func TestQuotaTargets(t *testing.T) {
	for _, bad := range []QuotaTarget{
		{}, {Table: "a b"}, {Namespace: "a b"}, {Table: "t", Namespace: "n"}, {RegionServer: "h:1"}, {RegionServer: "all", User: "u"},
	} {
		if _, err := bad.request(); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", bad, err)
		}
	}
	off := wire.NewRemoteError(wire.ClassDoNotRetryIO, "java.lang.UnsupportedOperationException: quota support disabled")
	a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
		req := call.Param.(*pb.SetQuotaRequest)
		if req.GetUserName() != "u" || req.GetTableName().GetQualifier() == nil || req.Throttle.TimedQuota != nil || req.Throttle.GetType() != pb.ThrottleType_WRITE_SIZE {
			t.Errorf("%v", req)
		}
		return nil, off
	})
	if err := a.RemoveThrottle(t.Context(), QuotaTarget{User: "u", Table: "t"}, WriteSize); !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "hbase.quota.enabled") {
		t.Errorf("a cluster without quotas: %v", err)
	}
	if len(core.calls) != 1 {
		t.Errorf("calls %v", core.calls)
	}
}

func TestTableCFs(t *testing.T) {
	list := TableCFs{"t": {"f"}, "ns:u": nil}
	if err := list.Append(TableCFs{"default:t": {"g", "f"}, "ns:u": {"x"}, "v": {"f"}}); err != nil || list.String() != "default.t:f,g;default.v:f;ns.u" {
		t.Errorf("%v, %v", list, err)
	}
	if err := list.Append(TableCFs{"v": nil}); err != nil || list.String() != "default.t:f,g;default.v;ns.u" {
		t.Errorf("%v, %v", list, err)
	}
	for _, bad := range []TableCFs{{"ns:u": {"x"}}, {"t": nil}, {"w": nil}, {"a b": nil}, {"t": {""}}} {
		if err := list.Remove(bad); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%v: %v, want ErrInvalid", bad, err)
		}
	}
	if err := list.Remove(TableCFs{"t": {"f", "g"}, "ns:u": nil}); err != nil || list.String() != "default.v" {
		t.Errorf("%v, %v", list, err)
	}
}

func TestActions(t *testing.T) {
	if a, err := ParseActions("rwA"); err != nil || a != Read|Write|Manage || a.Letters() != "RWA" || a.String() != "READ,WRITE,ADMIN" {
		t.Errorf("%v, %v", a, err)
	}
	if _, err := ParseActions("RQ"); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%v", err)
	}
	for _, bad := range []Scope{{Namespace: "n", Table: "t"}, {Family: "f"}, {Table: "t", Qualifier: "q"}, {Table: "a b"}} {
		if _, err := bad.toProto("grant", Read); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, p := range []Permission{{User: "u", Actions: Read}, {User: "@g", Scope: Scope{Namespace: "n"}, Actions: Exec}, {User: "u", Scope: Scope{Table: "n:t", Family: "f", Qualifier: "q"}, Actions: Create | Manage}} {
		m, err := userPermission("grant", p)
		if err != nil || permissionFromProto(m) != p {
			t.Errorf("%+v comes back as %+v, %v", p, permissionFromProto(m), err)
		}
	}
}

package admin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// throttlesFile is how HBase 2.6.4 refused the calls of playThrottles.
var throttlesFile = filepath.Join("testdata", "throttles-2.6.4.txt")

// TestThrottles: calls beyond each kind of limit are refused in HBase's words,
// with its wait.
func TestThrottles(t *testing.T) {
	compare(t, throttlesFile, playThrottles(t, embedded(t, minihbase.Options{InMemory: true, Servers: 1, ControlPort: -1, Quotas: true})))
}

// waits of limits of bytes depend on what was read and written before.
var someWait = regexp.MustCompile(` - wait .*`)

// playThrottles sets a limit for a user of its own at a time, and calls as that
// user until a call is refused.
func playThrottles(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	client, err := hbase.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	adm := client.Admin()
	if err := adm.CreateTable(ctx, admin.NewTable("throttled", admin.NewFamily("f"))); err != nil {
		t.Fatal(err)
	}
	var regions []admin.RegionLocation
	for len(regions) == 0 || regions[0].Server.IsZero() {
		if regions, err = adm.Regions(ctx, "throttled"); err != nil {
			t.Fatal(err)
		}
	}
	region := &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(regions[0].Region.String())}
	column := func(value string) []*pb.MutationProto_ColumnValue {
		return []*pb.MutationProto_ColumnValue{{Family: []byte("f"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{{Qualifier: []byte("q" + value[:1]), Value: []byte(value)}}}}
	}
	type op struct {
		name, method string
		param        func() wire.Marshaler
		result       func() wire.Unmarshaler
	}
	mutate := func(kind pb.MutationProto_MutationType, value string) func() wire.Marshaler {
		return func() wire.Marshaler {
			return &pb.MutateRequest{Region: region, Mutation: &pb.MutationProto{Row: []byte("r"), MutateType: &kind, ColumnValue: column(value)}}
		}
	}
	mutated := func() wire.Unmarshaler { return &pb.MutateResponse{} }
	get := op{"get", "Get", func() wire.Marshaler { return &pb.GetRequest{Region: region, Get: &pb.Get{Row: []byte("r")}} }, func() wire.Unmarshaler { return &pb.GetResponse{} }}
	put := op{"put", "Mutate", mutate(pb.MutationProto_PUT, strings.Repeat("v", 100)), mutated}
	increment := op{"increment", "Mutate", mutate(pb.MutationProto_INCREMENT, "\x00\x00\x00\x00\x00\x00\x00\x01"), mutated}
	scan := op{"scan", "Scan", func() wire.Marshaler {
		return &pb.ScanRequest{Region: region, Scan: &pb.Scan{}, NumberOfRows: new(uint32(1)), CloseScanner: new(true)}
	}, func() wire.Unmarshaler { return &pb.ScanResponse{} }}
	var out strings.Builder
	n := 0
	for _, c := range []struct {
		of, limit string
		ops       []op
	}{
		{"", "2req/hour", []op{get, put, scan, increment}},
		{"READ", "2req/hour", []op{get, scan, increment}},
		{"WRITE", "2req/hour", []op{put, increment}},
		{"", "300B/hour", []op{get, put}},
		{"READ", "300B/hour", []op{get, scan}},
		{"WRITE", "300B/hour", []op{put}},
		{"", "2CU/hour", []op{get, put}},
		{"READ", "2CU/hour", []op{get}},
		{"WRITE", "2CU/hour", []op{put}},
	} {
		for _, o := range c.ops {
			n++
			user := fmt.Sprintf("user%d", n)
			limit, err := admin.ParseThrottle(c.of, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			if err := adm.SetThrottle(ctx, admin.QuotaTarget{User: user}, limit); err != nil {
				t.Fatal(err)
			}
			conn, err := rpc.Dial(ctx, rpc.Config{Addr: regions[0].Server.Address(), Service: "ClientService", EffectiveUser: user})
			if err != nil {
				t.Fatal(err)
			}
			// A real server hears of the limit within a moment.
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				err = conn.Do(ctx, &rpc.Call{Method: o.method, Param: o.param(), Result: o.result()})
				if err != nil || time.Now().After(end) {
					break
				}
			}
			text := "not refused"
			if remote, ok := errors.AsType[*wire.RemoteError](err); ok {
				text = remote.Class + ": " + remote.Message
				if !strings.Contains(c.limit, "req") {
					text = someWait.ReplaceAllString(text, " - wait ...")
				}
			} else if err != nil {
				text = err.Error()
			}
			fmt.Fprintf(&out, "%s %s, %s: %s\n", c.of, c.limit, o.name, text)
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	return out.String()
}

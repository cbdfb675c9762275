package live

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// serve answers every connection with text, or never if text is empty.
func serve(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var conns []net.Conn
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if text == "" {
				conns = append(conns, c)
				continue
			}
			var b [4]byte
			_, _ = io.ReadFull(c, b[:])
			_, _ = io.WriteString(c, text)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

func TestZooKeeperHostsThatDoNotServe(t *testing.T) {
	for name, c := range map[string]struct{ text, id, cause string }{
		"no quorum":  {"This ZooKeeper instance is not currently serving requests\n", "ZK_NOT_SERVING", "does not serve"},
		"silent":     {"", "ZK_NOT_SERVING", "does not answer"},
		"web server": {"HTTP/1.1 400 Bad Request\r\n\r\n", "WRONG_PORT_CLASS", "web server"},
	} {
		t.Run(name, func(t *testing.T) {
			r, steps, err := Check(t.Context(), "hbase://"+serve(t, c.text)+"/hbase", Options{Dial: 300 * time.Millisecond, Step: time.Second})
			if !errors.Is(err, ErrIncomplete) {
				t.Errorf("err %v, steps %+v", err, steps)
			}
			f := r.Find(c.id)
			if f == nil || f.Severity != finding.Error || !strings.Contains(f.Cause, c.cause) {
				t.Errorf("got %+v", r.Findings)
			}
		})
	}
}

func TestNamesAndPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	r, _, err := Check(t.Context(), "hbase://no-such-host.invalid:2181,"+closed+"/hbase", Options{Dial: 300 * time.Millisecond, Step: 2 * time.Second})
	if !errors.Is(err, ErrIncomplete) || r.Find("NAME_UNRESOLVABLE") == nil || r.Find("PORT_UNREACHABLE") == nil {
		t.Errorf("%v %+v", err, r.Findings)
	}
	if _, _, err := Check(t.Context(), "nonsense://", Options{}); err == nil {
		t.Error("nonsense is an address")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Check(ctx, "hbase://"+closed+"/hbase", Options{}); err == nil {
		t.Error("a cancelled check succeeds")
	}
}

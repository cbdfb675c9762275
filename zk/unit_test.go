package zk_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver/memnet"
	"github.com/holdfast-hbase/holdfast/internal/jute"
	"github.com/holdfast-hbase/holdfast/internal/spoil"
	"github.com/holdfast-hbase/holdfast/zk"
)

func TestNegotiate(t *testing.T) {
	for _, c := range []struct {
		id                        string
		requested, min, max, want time.Duration
	}{
		{"NEG1", 180_000, 60_000, 90_000, 90_000}, {"NEG2", 90_000, 4000, 40_000, 40_000}, {"NEG3", 1, 4000, 40_000, 4000},
		{"NEG4", 1_000_000_000, 4000, 40_000, 40_000}, {"NEG5", 6000, 4000, 40_000, 6000}, {"NEG6", 180_000, 6000, 60_000, 60_000},
	} {
		if got := zk.Negotiate(c.requested*time.Millisecond, c.min*time.Millisecond, c.max*time.Millisecond); got != c.want*time.Millisecond {
			t.Errorf("%s: %v, want %v ms", c.id, got, int64(c.want))
		}
	}
}

func TestExpiresAt(t *testing.T) {
	day := func(s string) time.Duration {
		at, err := time.Parse("15:04:05.000", s)
		if err != nil {
			t.Fatal(err)
		}
		return at.Sub(at.Truncate(24 * time.Hour))
	}
	for _, c := range []struct {
		touch, want string
		tick        time.Duration
	}{
		{"00:49:36.769", "00:51:08.000", 2 * time.Second}, {"00:49:36.769", "00:51:07.000", time.Second}, {"00:49:36.769", "00:51:09.000", 3 * time.Second},
		{"00:49:36.769", "00:51:08.000", 4 * time.Second}, {"00:49:36.769", "00:51:12.000", 6 * time.Second}, {"00:49:36.000", "00:51:08.000", 2 * time.Second},
		{"00:49:37.999", "00:51:08.000", 2 * time.Second}, {"00:49:38.000", "00:51:10.000", 2 * time.Second},
	} {
		if got := zk.ExpiresAt(day(c.touch), 90*time.Second, c.tick); got != day(c.want) {
			t.Errorf("touch %s tick %v: %v, want %s", c.touch, c.tick, got, c.want)
		}
	}
}

func TestTimers(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		timeout          time.Duration
		n                int
		read, conn, ping time.Duration
		attempts         int
	}{
		{90_000 * ms, 5, 60_000 * ms, 18_000 * ms, 30_000 * ms, 1}, {6000 * ms, 3, 4000 * ms, 2000 * ms, 2000 * ms, 1}, {40_000 * ms, 7, 26_666 * ms, 5714 * ms, 13_333 * ms, 2},
	} {
		s := zk.StockTimers(c.timeout, c.n)
		if s.Read.Truncate(ms) != c.read || s.Connect.Truncate(ms) != c.conn || s.Ping.Truncate(ms) != c.ping || s.Attempts != c.attempts {
			t.Errorf("%v, %d hosts: %+v", c.timeout, c.n, s)
		}
		// The promise behind our own timers: however a connection dies, half of the budget is left when it is given up.
		if worst := zk.PingInterval(c.timeout) + zk.AnswerLimit(c.timeout); worst > c.timeout/2 {
			t.Errorf("%v: silence may cost %v", c.timeout, worst)
		}
	}
	for _, c := range []struct {
		left    time.Duration
		untried int
		want    time.Duration
	}{{6 * time.Second, 3, 2 * time.Second}, {time.Second, 10, 200 * ms}, {time.Minute, 1, 5 * time.Second}, {time.Second, 0, time.Second}, {0, 3, 200 * ms}} {
		if got := zk.AttemptLimit(c.left, c.untried, 200*ms, 5*time.Second); got != c.want {
			t.Errorf("%v over %d hosts: %v, want %v", c.left, c.untried, got, c.want)
		}
	}
	if zk.SafetyMargin(5*time.Second) != 250*ms || zk.SafetyMargin(100*time.Second) != 2*time.Second {
		t.Error("safety margin")
	}
}

func TestParseConnectString(t *testing.T) {
	for in, want := range map[string]string{
		"h1":                                   "h1:2181|",
		"h1:2181,h2:2182":                      "h1:2181 h2:2182|",
		" h1 , h2:1/a/b":                       "h1:2181 h2:1|/a/b",
		"h1/":                                  "h1:2181|",
		"h1/a/":                                "h1:2181|/a",
		"[::1]:2181,[fe80::1%eth0]/x":          "[::1]:2181 [fe80::1%eth0]:2181|/x",
		"10.0.0.1:80":                          "10.0.0.1:80|",
		"":                                     "!no hosts",
		"/a":                                   "!no hosts",
		"h1,,h2":                               "!empty host",
		"h1:":                                  "!no port after the colon",
		":2181":                                "!no host before the port",
		"h1:0":                                 "!port \"0\"",
		"h1:65536":                             "!port \"65536\"",
		"h1:x":                                 "!port \"x\"",
		"::1":                                  "!must be in brackets",
		"[::1":                                 "![ without ]",
		"[h1]:1":                               "!not an IPv6 address",
		"[10.0.0.1]:1":                         "!not an IPv6 address",
		"[::1]x":                               "!after ]",
		"[::1]:":                               "!no port after the colon",
		"h1/a/../b":                            "!relative element",
		"h1//a":                                "!empty element",
		"user@h1":                              "!not a host name",
		"h1:2181,h2:99999,h3":                  `"h2:99999"`,
		"zk1.example.com,zk2.example.com/hb-1": "zk1.example.com:2181 zk2.example.com:2181|/hb-1",
	} {
		servers, chroot, err := zk.ParseConnectString(in)
		got := strings.Join(servers, " ") + "|" + chroot
		if err != nil {
			var ae *zk.AddressError
			if !errors.As(err, &ae) || ae.Input != in {
				t.Errorf("%q: %v", in, err)
			}
			got = "!" + err.Error()
		}
		if want[0] == '!' || want[0] == '"' {
			if !strings.HasPrefix(got, "!") || !strings.Contains(got, strings.TrimPrefix(want, "!")) {
				t.Errorf("%q: %q, want an error with %q", in, got, want)
			}
		} else if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzParseConnectString(f *testing.F) {
	for _, s := range []string{"h1:2181,h2:2181/chroot", "[::1]:2181/", "a,b,c", "/"} {
		spoil.Add(f, s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, chroot, err := zk.ParseConnectString(s)
		if err != nil {
			return
		}
		// What was understood is in normal form.
		again, chroot2, err := zk.ParseConnectString(strings.Join(servers, ",") + chroot)
		if err != nil || !slices.Equal(again, servers) || chroot2 != chroot {
			t.Fatalf("%q -> %q %q -> %q %q %v", s, servers, chroot, again, chroot2, err)
		}
	})
}

func TestConfigNamesEveryProblem(t *testing.T) {
	_, err := zk.New(zk.Config{Servers: []string{"ok", "h:x"}, Chroot: "no", SessionTimeout: time.Microsecond, MaxInFlight: -1, DialStagger: -1})
	for _, part := range []string{`"h:x"`, "Chroot: ", "SessionTimeout: 1", "MaxInFlight: -1", "DialStagger: -1"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	if _, err := zk.New(zk.Config{}); err == nil || !strings.Contains(err.Error(), "no Servers") {
		t.Errorf("%v", err)
	}
}

// TestFollow sees creation, changes, deletion and another creation, across a lost connection.
func TestFollow(t *testing.T) {
	inWorld(t, 2, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(10 * time.Second))
		var states []string
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() {
			for n, err := range w.c.Follow(ctx, "/f") {
				switch {
				case err != nil:
					done <- err
					return
				case n.Exists:
					states = append(states, string(n.Data))
				default:
					states = append(states, "-")
				}
			}
			done <- nil
		}()
		settle := func() { time.Sleep(100 * time.Millisecond); synctest.Wait() }
		put := func(v string) {
			if err := w.s.Put("/f", []byte(v), 0); err != nil {
				t.Fatal(err)
			}
			settle()
		}
		settle()
		put("1")
		put("2")
		w.s.DropConnections()
		put("3")
		if err := w.s.Delete("/f", -1); err != nil {
			t.Fatal(err)
		}
		settle()
		put("4")
		if want := []string{"-", "1", "2", "3", "-", "4"}; !slices.Equal(states, want) {
			t.Fatalf("states %v, want %v", states, want)
		}
		w.s.ExpireSession(w.c.SessionID())
		if err := <-done; !errors.Is(err, zk.ErrSessionExpired) {
			t.Fatal(err)
		}
	})
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(10 * time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n := 0
		for _, err := range w.c.Follow(ctx, "/f") {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 1 || time.Since(w.began) > 1100*time.Millisecond {
			t.Fatalf("%d states, ended after %v", n, time.Since(w.began))
		}
	})
}

// TestTLS speaks TLS from the first byte, and tells a plain port and a stranger's certificate apart.
func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, zkserver.Config{Listeners: []net.Listener{ln}})
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	c := open(t, zk.Config{Servers: []string{s.Addr()}, TLS: &tls.Config{RootCAs: roots}})
	if err := c.Sync(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	plain := startServer(t, zkserver.Config{})
	for name, cfg := range map[string]zk.Config{
		"a stranger's certificate": {Servers: []string{s.Addr()}, TLS: &tls.Config{}},
		"a plain port":             {Servers: []string{plain.Addr()}, TLS: &tls.Config{RootCAs: roots}},
	} {
		c, err := zk.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); len(c.Attempts()) == 0 && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
		if a := c.Attempts(); len(a) == 0 || a[0].Phase != zk.PhaseTLS || a[0].Outcome != zk.OutcomeTLS {
			t.Errorf("%s: %v", name, a)
		}
		closeConn(t, c)
	}
}

// FuzzClient connects to a server that answers the handshake properly and then sends whatever it likes.
func FuzzClient(f *testing.F) {
	frame := func(parts ...func(*jute.Writer)) []byte {
		var w jute.Writer
		mark := w.BeginFrame()
		for _, p := range parts {
			p(&w)
		}
		w.EndFrame(mark)
		return w.Bytes()
	}
	header := func(xid int32, zxid int64, code jute.Code) func(*jute.Writer) {
		h := jute.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}
		return h.Encode
	}
	spoil.Add(f, []byte{0, 0, 0, 4, 0, 0, 0, 1})
	spoil.Add(f, frame(header(1, 5, 0), func(w *jute.Writer) { w.Buffer([]byte("x")) }, (&jute.Stat{}).Encode))
	spoil.Add(f, frame(header(-1, -1, 0), (&jute.WatcherEvent{Type: jute.EventDeleted, Path: "/e"}).Encode))
	spoil.Add(f, frame(header(-1, -1, 0), (&jute.WatcherEvent{Type: jute.EventCreated}).Encode))
	spoil.Add(f, frame(header(-2, 1, 0)))
	spoil.Add(f, frame(header(-4, 1, -115)))
	spoil.Add(f, frame(header(1, 1, -112)))
	spoil.Add(f, frame(header(1, 1, -118)))
	f.Fuzz(func(t *testing.T, in []byte) {
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New()
			ln, err := n.Listen("tcp", "10.0.0.1:2181")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					nc, err := ln.Accept()
					if err != nil {
						return
					}
					if _, err := jute.ReadFrame(nc, 1024); err == nil {
						nc.Write(frame((&jute.ConnectResponse{TimeoutMs: 4000, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true}).Encode))
						nc.Write(in)
						go func() { io.Copy(io.Discard, nc); nc.Close() }()
					}
				}
			}()
			c, err := zk.New(zk.Config{Servers: []string{"10.0.0.1"}, Dial: n.DialContext})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			go c.AddWatch(ctx, "/", zk.Recursive)
			go c.ChildrenW(ctx, "/e")
			c.GetW(ctx, "/e")
			c.Close(ctx)
			ln.Close()
		})
	})
}

func BenchmarkGet(b *testing.B) {
	s, err := zkserver.Start(zkserver.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c, err := zk.Open(b.Context(), zk.Config{Servers: []string{s.Addr()}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := c.Get(b.Context(), "/zookeeper"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("64 at a time", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, _, err := c.Get(b.Context(), "/zookeeper"); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

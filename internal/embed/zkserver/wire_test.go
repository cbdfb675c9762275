package zkserver_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver/memnet"
	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// raw is a connection driven frame by frame.
type raw struct {
	t  *testing.T
	nc net.Conn
}

func (r raw) send(hexText string) {
	r.t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(hexText), ""))
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.nc.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

func (r raw) frame() []byte {
	r.t.Helper()
	r.nc.SetReadDeadline(time.Now().Add(time.Minute))
	f, err := jute.ReadFrame(r.nc, 1<<20)
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// want reads one frame and compares it with hex text in which a run of dots stands for bytes that vary.
func (r raw) want(hexText string) {
	r.t.Helper()
	got := hex.EncodeToString(r.frame())
	pattern := strings.Join(strings.Fields(hexText), "")[8:] // without the length
	ok := len(got) == len(pattern)
	for i := 0; ok && i < len(got); i++ {
		ok = pattern[i] == '.' || pattern[i] == got[i]
	}
	if !ok {
		r.t.Fatalf("\n got %s\nwant %s", got, pattern)
	}
}

func (r raw) eof() {
	r.t.Helper()
	r.nc.SetReadDeadline(time.Now().Add(time.Minute))
	if b, err := io.ReadAll(r.nc); len(b) != 0 || err != nil {
		r.t.Fatalf("%d bytes and %v instead of an end", len(b), err)
	}
}

// silent checks that nothing comes for d.
func (r raw) silent(d time.Duration) {
	r.t.Helper()
	r.nc.SetReadDeadline(time.Now().Add(d))
	var b [1]byte
	if n, err := r.nc.Read(b[:]); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Fatalf("%d bytes, %v instead of silence", n, err)
	}
}

const (
	noPassword = "00000010 00000000000000000000000000000000"
	connectNew = "0000002d 00000000 0000000000000000 00001770 0000000000000000 " + noPassword + " 00"
)

func (r raw) connect() (id int64, password []byte) {
	r.t.Helper()
	r.send(connectNew)
	var resp jute.ConnectResponse
	rd := jute.NewReader(r.frame())
	resp.Decode(rd)
	if rd.Err() != nil || resp.TimeoutMs != 6000 || !resp.HasReadOnly {
		r.t.Fatalf("%+v %v", resp, rd.Err())
	}
	return resp.SessionID, resp.Password
}

// resume sends a handshake for a session.
func (r raw) resume(id, zxid int64, timeoutMs int32, password []byte) {
	r.t.Helper()
	var w jute.Writer
	mark := w.BeginFrame()
	(&jute.ConnectRequest{LastZxidSeen: zxid, TimeoutMs: timeoutMs, SessionID: id, Password: password, HasReadOnly: true}).Encode(&w)
	w.EndFrame(mark)
	if _, err := r.nc.Write(w.Bytes()); err != nil {
		r.t.Fatal(err)
	}
}

func dialRaw(t *testing.T, s *zkserver.Server) raw {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return raw{t, nc}
}

// TestWireVectors replays the conversation captured from ZooKeeper 3.8.0 and expects its bytes.
func TestWireVectors(t *testing.T) {
	s := start(t, zkserver.Config{})
	r := dialRaw(t, s)
	r.send(connectNew)
	r.want("00000025 00000000 00001770 01.............. 00000010 ................................ 00")
	r.send("00000037 00000001 00000001 00000003 2f7631 00000005 68656c6c6f 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000")
	r.want("00000017 00000001 0000000000000002 00000000 00000003 2f7631")
	r.send("00000008 fffffffe 0000000b")
	r.want("00000010 fffffffe 0000000000000002 00000000")
	r.send("0000001d fffffffc 00000064 00000000 00000006 646967657374 00000003 753a70")
	r.want("00000010 fffffffc 0000000000000000 00000000")
	r.send("00000012 00000008 00000003 00000005 2f6e6f7065 00")
	r.want("00000010 00000008 0000000000000002 ffffff9b")
	r.send("00000010 00000009 00000004 00000003 2f7631 01")
	r.want("0000005d 00000009 0000000000000002 00000000 00000005 68656c6c6f 0000000000000002 0000000000000002 ................ ................ 00000000 00000000 00000000 0000000000000000 00000005 00000000 0000000000000002")
	// setData: the event comes before the reply.
	r.send("0000001d 0000000a 00000005 00000003 2f7631 00000006 776f726c6421 ffffffff")
	r.want("0000001f ffffffff ffffffffffffffff 00000000 00000003 00000003 00000003 2f7631")
	r.want("00000054 0000000a 0000000000000003 00000000 0000000000000002 0000000000000003 ................ ................ 00000001 00000000 00000000 0000000000000000 00000006 00000000 0000000000000002")
	r.send("0000003c 00000012 0000000e  0000000d 00 ffffffff 00000003 2f7631 00000063  00000002 00 ffffffff 00000006 2f76312f732d ffffffff  ffffffff 01 ffffffff")
	r.want("00000033 00000012 0000000000000004 00000000  ffffffff 00 ffffff99 ffffff99  ffffffff 00 fffffffe fffffffe  ffffffff 01 ffffffff")
	// setWatches from zxid 0: three events, then the reply.
	r.send("00000036 fffffff8 00000065 0000000000000000 00000001 00000003 2f7631 00000002 00000003 2f7631 00000003 2f7a7a 00000001 00000001 2f")
	r.want("0000001f ffffffff ffffffffffffffff 00000000 00000003 00000003 00000003 2f7631")
	r.want("0000001f ffffffff ffffffffffffffff 00000000 00000001 00000003 00000003 2f7631")
	r.want("0000001d ffffffff ffffffffffffffff 00000000 00000004 00000003 00000001 2f")
	r.want("00000010 fffffff8 0000000000000004 00000000")
	r.send("00000013 00000014 0000006a 00000003 2f7631 00000001")
	r.want("00000014 00000014 0000000000000004 00000000 00000000")
	r.send("00000008 00000017 0000006b")
	r.want("00000032 00000017 0000000000000004 00000000 00000002 00000002 6970 00000009 3132372e302e302e31 00000006 646967657374 00000001 75")
	r.send("00000008 00000008 fffffff5")
	r.want("00000010 00000008 0000000000000005 00000000")
	r.eof()
	r = dialRaw(t, s)
	r.connect()
	r.send("00000008 00000018 0000004d") // operation 77
	r.want("00000010 00000018 ffffffffffffffff fffffffa")
	r.eof()
}

func TestHandshakes(t *testing.T) {
	s := start(t, zkserver.Config{})
	first := dialRaw(t, s)
	id, password := first.connect()
	expired := "00000025 00000000 00000000 0000000000000000 " + noPassword + " 00"

	t.Run("without the readOnly byte", func(t *testing.T) {
		r := dialRaw(t, s)
		r.send("0000002c 00000000 0000000000000000 00001770 0000000000000000 " + noPassword)
		r.want("00000024 00000000 00001770 01.............. 00000010 ................................")
	})
	t.Run("empty password", func(t *testing.T) {
		r := dialRaw(t, s)
		r.send("0000001d 00000000 0000000000000000 00000001 0000000000000000 00000000 00")
		r.want("00000025 00000000 00000fa0 01.............. 00000010 ................................ 00")
	})
	t.Run("unknown session", func(t *testing.T) {
		r := dialRaw(t, s)
		r.resume(12345, 0, 6000, password)
		r.want(expired)
		r.eof()
	})
	t.Run("client is ahead", func(t *testing.T) {
		r := dialRaw(t, s)
		r.resume(id, 1<<40, 6000, password)
		r.eof()
	})
	t.Run("resume kicks the old connection", func(t *testing.T) {
		r := dialRaw(t, s)
		r.resume(id, 0, 50000, password)
		var resp jute.ConnectResponse
		resp.Decode(jute.NewReader(r.frame()))
		if resp.SessionID != id || resp.TimeoutMs != 40000 || !bytes.Equal(resp.Password, password) {
			t.Fatalf("%+v", resp)
		}
		first.eof()
	})
	t.Run("wrong password", func(t *testing.T) {
		r := dialRaw(t, s)
		r.resume(id, 0, 6000, make([]byte, 16))
		r.want(expired)
		r.eof()
		if len(s.Sessions()) == 0 {
			t.Fatal("a wrong password ended the session")
		}
	})
	t.Run("garbage", func(t *testing.T) {
		for _, in := range []string{"7fffffff", "ffffffff", "00000000", "00000004 01020304", "474554202f20485454502f312e310d0a"} {
			r := dialRaw(t, s)
			r.send(in)
			r.eof()
		}
	})
	t.Run("bad requests", func(t *testing.T) {
		r := dialRaw(t, s)
		r.connect()
		r.send("0000000c 00000001 00000004 7fffffff") // getData of a path of 2 GiB
		r.want("00000010 00000001 ................ fffffffb")
		r.send("0000000e 00000002 00000004 00000001 78 00") // getData of "x": not a path
		r.want("00000010 00000002 ................ ffffff9b")
		r.nc.Write([]byte{0, 0, 0, 4, 0, 0, 0, 1})
		r.eof()
	})
	t.Run("auth failure closes", func(t *testing.T) {
		r := dialRaw(t, s)
		r.connect()
		r.send("00000018 fffffffc 00000064 00000000 00000001 78 00000003 753a70")
		r.want("00000010 fffffffc 0000000000000000 ffffff8d")
		r.eof()
	})
}

// TestExpiryBuckets is the table of the session tracker: expiry happens at the first multiple of the tick strictly after touch + timeout.
func TestExpiryBuckets(t *testing.T) {
	clock := func(s string) time.Time {
		at, err := time.Parse("15:04:05.000", s)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2014, 3, 3, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	}
	for _, c := range []struct {
		name, touch string
		tick        time.Duration
		expires     string
	}{
		{"EXP1", "00:49:36.769", 2 * time.Second, "00:51:08.000"},
		{"EXP2", "00:49:36.769", time.Second, "00:51:07.000"},
		{"EXP3", "00:49:36.769", 3 * time.Second, "00:51:09.000"},
		{"EXP4", "00:49:36.769", 4 * time.Second, "00:51:08.000"},
		{"EXP5", "00:49:36.769", 6 * time.Second, "00:51:12.000"},
		{"EXP6 first", "00:49:36.000", 2 * time.Second, "00:51:08.000"},
		{"EXP6 last", "00:49:37.999", 2 * time.Second, "00:51:08.000"},
		{"EXP7", "00:49:38.000", 2 * time.Second, "00:51:10.000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(clock(c.touch))) // a bubble begins in 2000
				n := memnet.New()
				s, err := zkserver.Start(zkserver.Config{
					Listen: n.Listen, Addrs: []string{"10.0.0.1:2181"}, TickTime: c.tick, MaxSessionTimeout: 90 * time.Second, WallClockBuckets: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				id := s.OpenSession(90 * time.Second)
				if err := s.Put("/e", nil, id); err != nil {
					t.Fatal(err)
				}
				s.AbandonSession(id)
				time.Sleep(time.Until(clock(c.expires)) - time.Millisecond)
				synctest.Wait()
				if !s.Exists("/e") {
					t.Fatal("expired a millisecond early")
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if s.Exists("/e") {
					t.Fatal("not expired at the boundary")
				}
			})
		})
	}
}

// TestFollowerLag: a touch through a follower counts from the next half tick.
func TestFollowerLag(t *testing.T) {
	for member, want := range []time.Duration{8 * time.Second, 10 * time.Second} {
		t.Run(fmt.Sprint("member ", member), func(t *testing.T) {
			bubble(t, 2, zkserver.Config{}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
				time.Sleep(1500 * time.Millisecond) // +6 s = 7.5 s on the leader, 2 s + 6 s = 8 s (so the bucket after 8 s) through the follower
				r := dialMem(t, n, s.Addrs()[member])
				r.connect()
				r.nc.Close()
				began := s.Sessions()[0]
				if got := began.ExpiresIn + 1500*time.Millisecond; got != want {
					t.Fatalf("expires at %v, want %v", got, want)
				}
				time.Sleep(want - 1500*time.Millisecond)
				synctest.Wait()
				if len(s.Sessions()) != 0 {
					t.Fatal("not expired")
				}
			})
		})
	}
}

func bubble(t *testing.T, members int, cfg zkserver.Config, f func(*testing.T, *memnet.Network, *zkserver.Server)) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		cfg.Listen = n.Listen
		for i := range members {
			cfg.Addrs = append(cfg.Addrs, fmt.Sprintf("10.0.0.%d:2181", i+1))
		}
		s, err := zkserver.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f(t, n, s)
	})
}

func dialMem(t *testing.T, n *memnet.Network, addr string) raw {
	t.Helper()
	nc, err := n.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return raw{t, nc}
}

const (
	ping = "00000008 fffffffe 0000000b"
	pong = "00000010 fffffffe ................ 00000000"
)

// TestFaults checks what each fault looks like from outside.
func TestFaults(t *testing.T) {
	set := func(t *testing.T, s *zkserver.Server, f zkserver.Fault) {
		t.Helper()
		if err := s.Member(0).SetFault(f); err != nil {
			t.Fatal(err)
		}
	}
	type test = func(*testing.T, *memnet.Network, *zkserver.Server)
	for name, f := range map[string]test{
		"frozen": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			set(t, s, zkserver.Fault{Mode: zkserver.Frozen})
			r.send(ping)
			r.silent(time.Minute)
			if len(s.Sessions()) != 1 {
				t.Fatal("a frozen server expires nothing")
			}
			late := dialMem(t, n, s.Addr())
			late.send(connectNew)
			late.silent(time.Second)
			set(t, s, zkserver.Fault{})
			r.eof() // overdue, and expired before it is heard
			late.want("00000025 00000000 00001770 01.............. 00000010 ................................ 00")
			if len(s.Sessions()) != 1 {
				t.Fatal("only the late session should be there")
			}
		},
		"refuse": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			set(t, s, zkserver.Fault{Mode: zkserver.Refuse})
			if _, err := n.DialContext(t.Context(), "tcp", s.Addr()); err == nil {
				t.Fatal("accepted")
			}
			r.send(ping)
			r.want(pong)
			set(t, s, zkserver.Fault{})
			r2 := dialMem(t, n, s.Addr())
			r2.connect()
		},
		"black hole": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			set(t, s, zkserver.Fault{Mode: zkserver.BlackHole})
			r.send(ping)
			r.silent(time.Second)
			set(t, s, zkserver.Fault{})
			r.eof()
		},
		"hangup": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			set(t, s, zkserver.Fault{Mode: zkserver.Hangup})
			dialMem(t, n, s.Addr()).eof()
		},
		"silent": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			old := dialMem(t, n, s.Addr())
			old.connect()
			set(t, s, zkserver.Fault{Mode: zkserver.Silent})
			r := dialMem(t, n, s.Addr())
			r.send(connectNew)
			r.silent(5 * time.Second)
			old.send(ping)
			old.want(pong)
		},
		"leaderless": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			set(t, s, zkserver.Fault{Mode: zkserver.Leaderless})
			r.send(ping)
			r.want(pong)
			r.send("0000000f 00000001 00000003 00000002 2f61 00") // exists is answered
			r.want("00000010 00000001 ................ ffffff9b")
			r.send("0000000e 00000002 00000009 00000002 2f61") // sync is not
			r.silent(2 * time.Second)
			set(t, s, zkserver.Fault{Mode: zkserver.Electing})
			r.eof()
			r = dialMem(t, n, s.Addr())
			r.send(connectNew)
			r.eof()
		},
		"read-only": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			set(t, s, zkserver.Fault{Mode: zkserver.ReadOnly})
			r := dialMem(t, n, s.Addr())
			r.send(connectNew)
			r.eof()
			r = dialMem(t, n, s.Addr())
			r.send("0000002d 00000000 0000000000000000 00001770 0000000000000000 " + noPassword + " 01")
			r.want("00000025 00000000 00001770 0000000000000000 00000010 ................................ 01")
			r.send("0000000f 00000001 00000003 00000002 2f61 00")
			r.want("00000010 00000001 ................ ffffff9b")
			r.send("00000012 00000002 00000002 00000002 2f61 ffffffff") // delete
			r.want("00000010 00000002 ................ ffffff89")
		},
		"stalled pings": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			set(t, s, zkserver.Fault{StallPings: true})
			for range 7 {
				r.send(ping)
				r.silent(time.Second)
			}
			r.eof() // pings did not keep the session
		},
		"latency": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			set(t, s, zkserver.Fault{Latency: 300 * time.Millisecond})
			began := time.Now()
			r.send(ping)
			r.want(pong)
			if d := time.Since(began); d != 300*time.Millisecond {
				t.Fatal(d)
			}
		},
		"hang after": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			set(t, s, zkserver.Fault{HangAfter: 2})
			r := dialMem(t, n, s.Addr())
			r.connect()
			r.send(ping + ping)
			r.want(pong)
			r.silent(2 * time.Second)
		},
		"truncate": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			set(t, s, zkserver.Fault{Truncate: 4})
			r := dialMem(t, n, s.Addr())
			r.connect()
			r.send(ping)
			r.want("00000004 fffffffe")
		},
		"sessionless sockets are dropped": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			time.Sleep(11 * time.Second)
			r.eof()
		},
		"session moved": func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			id, _ := r.connect()
			if !s.MoveSession(id) {
				t.Fatal("not moved")
			}
			r.send("0000000f 00000001 00000003 00000002 2f61 00")
			r.want("00000010 00000001 ................ ffffff8a")
		},
	} {
		t.Run(name, func(t *testing.T) { bubble(t, 1, zkserver.Config{}, f) })
	}
}

// TestMovedBetweenMembers: a session resumed on another member leaves its old connection open and powerless.
func TestMovedBetweenMembers(t *testing.T) {
	bubble(t, 2, zkserver.Config{}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
		a := dialMem(t, n, s.Addrs()[0])
		id, password := a.connect()
		b := dialMem(t, n, s.Addrs()[1])
		b.resume(id, 0, 6000, password)
		b.want("00000025 00000000 00001770 01.............. 00000010 ................................ 00")
		a.send("0000000f 00000001 00000003 00000002 2f61 00")
		a.want("00000010 00000001 ................ ffffff8a")
		b.send(ping)
		b.want(pong)
	})
}

// TestStallLeader plays the whole election.
func TestStallLeader(t *testing.T) {
	bubble(t, 3, zkserver.Config{}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
		r := dialMem(t, n, s.Addrs()[1])
		id, password := r.connect()
		s.StallLeader(9500*time.Millisecond, 1700*time.Millisecond)
		began := time.Now()
		r.send("0000000e 00000002 00000009 00000002 2f61")
		r.nc.SetReadDeadline(time.Now().Add(time.Minute))
		if b, err := io.ReadAll(r.nc); len(b) != 0 || err != nil || time.Since(began) != 9500*time.Millisecond {
			t.Fatalf("%x, %v after %v", b, err, time.Since(began))
		}
		r = dialMem(t, n, s.Addrs()[2])
		r.send(connectNew)
		r.eof()
		time.Sleep(1700 * time.Millisecond)
		synctest.Wait()
		if s.Leader() != 1 || s.Zxid()>>32 != 1 {
			t.Fatalf("leader %d, zxid %x", s.Leader(), s.Zxid())
		}
		r = dialMem(t, n, s.Addrs()[2])
		r.resume(id, 0, 6000, password)
		r.want("00000025 00000000 00001770 01.............. 00000010 ................................ 00")
		dialMem(t, n, s.Addrs()[0]).send(connectNew) // accepted by the kernel of the frozen one
	})
}

// TestSlowReader: a client that does not read its replies stops being read; one that does not read its events is dropped.
func TestSlowReader(t *testing.T) {
	bubble(t, 1, zkserver.Config{MaxQueued: 64}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
		if _, err := s.Create("/big", make([]byte, 200_000), zkserver.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r := dialMem(t, n, s.Addr())
		r.connect()
		r.send("00000011 00000014 0000006a 00000001 2f 00000001") // watch everything
		r.frame()
		for i := range 1000 {
			r.nc.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := fmt.Fprintf(r.nc, "\x00\x00\x00\x11\x00\x00\x00%c\x00\x00\x00\x04\x00\x00\x00\x04/big\x00", i%100+1); err != nil {
				break // the server has stopped reading and the pipe is full
			}
		}
		synctest.Wait()
		for range 200 {
			if _, err := s.Create("/n-", nil, zkserver.CreateOptions{Sequential: true}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		r.nc.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.Copy(io.Discard, r.nc); err != nil {
			t.Fatalf("the connection should have ended: %v", err)
		}
	})
}

// everyRequest is a request of each kind, with a body as it should be.
func everyRequest() [][]byte {
	open := jute.OpenACL()
	create := func(op jute.OpCode, flags int32) func(*jute.Writer) {
		return func(w *jute.Writer) {
			(&jute.CreateRequest{Path: "/a", Data: []byte("d"), ACL: open, Flags: flags, TTLMs: 9}).Encode(w, op)
		}
	}
	path := func(w *jute.Writer) { w.String("/a") }
	watches := func(op jute.OpCode) func(*jute.Writer) {
		return func(w *jute.Writer) {
			(&jute.SetWatches{RelativeZxid: 1, Data: []string{"/a"}, Exist: []string{"/b"}, Child: []string{"/"}, Persistent: []string{"/p"}, Recursive: []string{"/r"}}).Encode(w, op)
		}
	}
	multi := func(ops ...jute.Op) func(*jute.Writer) { return func(w *jute.Writer) { jute.EncodeMulti(w, ops) } }
	none := func(*jute.Writer) {}
	var out [][]byte
	for op, body := range map[jute.OpCode]func(*jute.Writer){
		jute.OpCreate: create(jute.OpCreate, 3), jute.OpCreate2: create(jute.OpCreate2, 1), jute.OpCreateContainer: create(jute.OpCreateContainer, 4), jute.OpCreateTTL: create(jute.OpCreateTTL, 5),
		jute.OpDelete: (&jute.PathVersion{Path: "/a", Version: -1}).Encode, jute.OpCheck: (&jute.PathVersion{Path: "/a"}).Encode,
		jute.OpExists: (&jute.PathWatch{Path: "/a", Watch: true}).Encode, jute.OpGetData: (&jute.PathWatch{Path: "/"}).Encode,
		jute.OpGetChildren: (&jute.PathWatch{Path: "/", Watch: true}).Encode, jute.OpGetChildren2: (&jute.PathWatch{Path: "/"}).Encode,
		jute.OpSetData: (&jute.SetDataRequest{Path: "/a", Data: []byte("e"), Version: -1}).Encode, jute.OpSetACL: (&jute.SetACLRequest{Path: "/a", ACL: open}).Encode,
		jute.OpGetACL: path, jute.OpSync: path, jute.OpGetEphemerals: path, jute.OpGetAllChildrenNumber: path,
		jute.OpMulti:      multi(jute.Op{Code: jute.OpCreate, Path: "/a", ACL: open}, jute.Op{Code: jute.OpSetData, Path: "/a"}, jute.Op{Code: jute.OpCheck, Path: "/a"}, jute.Op{Code: jute.OpDelete, Path: "/a"}),
		jute.OpMultiRead:  multi(jute.Op{Code: jute.OpGetData, Path: "/"}, jute.Op{Code: jute.OpGetChildren, Path: "/a"}),
		jute.OpSetWatches: watches(jute.OpSetWatches), jute.OpSetWatches2: watches(jute.OpSetWatches2),
		jute.OpAddWatch: (&jute.PathMode{Path: "/a", Mode: 1}).Encode, jute.OpCheckWatches: (&jute.PathMode{Path: "/a", Mode: 3}).Encode, jute.OpRemoveWatches: (&jute.PathMode{Path: "/a", Mode: 2}).Encode,
		jute.OpAuth:     (&jute.AuthPacket{Scheme: "digest", Auth: []byte("u:p")}).Encode,
		jute.OpReconfig: func(w *jute.Writer) { w.String("server.1=h:1:2"); w.String(""); w.String(""); w.Long(-1) },
		jute.OpSASL:     func(w *jute.Writer) { w.Buffer([]byte("token")) }, jute.OpWhoAmI: none, jute.OpPing: none, jute.OpCloseSession: none,
	} {
		out = append(out, request(1, op, body))
	}
	return out
}

// FuzzServer throws bytes at a session and at a handshake: the server answers or hangs up, and serves the next client.
func FuzzServer(f *testing.F) {
	unhex := func(s string) []byte {
		b, _ := hex.DecodeString(strings.Join(strings.Fields(s), ""))
		return b
	}
	f.Add(unhex("00000012 00000008 00000003 00000005 2f6e6f7065 00"))
	f.Add(unhex("0000003c 00000012 0000000e  0000000d 00 ffffffff 00000003 2f7631 00000063  00000002 00 ffffffff 00000006 2f76312f732d ffffffff  ffffffff 01 ffffffff"))
	f.Add(unhex("00000037 00000001 00000001 00000003 2f7631 00000005 68656c6c6f 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000003"))
	f.Add([]byte("mntr"))
	for _, seed := range everyRequest() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		bubble(t, 1, zkserver.Config{}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			r.nc.Write(in)
			h := dialMem(t, n, s.Addr())
			h.nc.Write(in)
			synctest.Wait()
			last := dialMem(t, n, s.Addr())
			last.connect()
			last.send(ping)
			last.want(pong)
		})
	})
}

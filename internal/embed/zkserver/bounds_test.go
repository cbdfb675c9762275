package zkserver_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver/memnet"
	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// request makes a frame.
func request(xid int32, op jute.OpCode, body func(*jute.Writer)) []byte {
	var w jute.Writer
	mark := w.BeginFrame()
	(&jute.RequestHeader{Xid: xid, Op: op}).Encode(&w)
	body(&w)
	w.EndFrame(mark)
	return w.Bytes()
}

// ask sends a request and gives the code it is answered with; events before it are passed over.
func (r raw) ask(op jute.OpCode, body func(*jute.Writer)) jute.Code {
	r.t.Helper()
	if _, err := r.nc.Write(request(7, op, body)); err != nil {
		r.t.Fatal(err)
	}
	for {
		var h jute.ReplyHeader
		h.Decode(jute.NewReader(r.frame()))
		if h.Xid == 7 {
			return h.Err
		}
	}
}

func creation(path string, size int, flags int32) func(*jute.Writer) {
	return func(w *jute.Writer) {
		(&jute.CreateRequest{Path: path, Data: make([]byte, size), ACL: jute.OpenACL(), Flags: flags}).Encode(w, jute.OpCreate)
	}
}

// gone waits until the server has ended a connection, whatever it says before.
func (r raw) gone() {
	r.t.Helper()
	r.nc.SetReadDeadline(time.Now().Add(time.Hour))
	if _, err := io.Copy(io.Discard, r.nc); err != nil {
		r.t.Fatalf("%v instead of an end", err)
	}
}

// TestBounds holds each limit against a client that goes beyond it; another client is served all the while.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		cfg zkserver.Config
		f   func(*testing.T, *memnet.Network, *zkserver.Server)
	}{
		"two gigabytes announced": {zkserver.Config{}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			for _, length := range []string{"7fffffff", "80000000", "ffffffff", "00100400"} {
				r := dialMem(t, n, s.Addr())
				r.connect()
				r.send(length + "00000001")
				r.eof()
				h := dialMem(t, n, s.Addr())
				h.send(length + "00000001")
				h.eof()
			}
		}},
		"half a request": {zkserver.Config{FrameTimeout: 3 * time.Second}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			for _, size := range []int{100, 200_000} {
				r := dialMem(t, n, s.Addr())
				r.connect()
				frame := request(1, jute.OpSetData, (&jute.SetDataRequest{Path: "/a", Data: make([]byte, size)}).Encode)
				r.nc.Write(frame[:len(frame)-1])
				began := time.Now()
				r.gone()
				if d := time.Since(began); d != 3*time.Second {
					t.Fatalf("%d bytes: after %v", size, d)
				}
			}
		}},
		"byte by byte": {zkserver.Config{FrameTimeout: 3 * time.Second}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			began := time.Now()
			for _, b := range request(1, jute.OpSync, func(w *jute.Writer) { w.String("/" + string(bytes.Repeat([]byte("x"), 1000))) }) {
				if _, err := r.nc.Write([]byte{b}); err != nil {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			// Its four bytes of length do not count.
			if d := time.Since(began); d < 3*time.Second || d > 3200*time.Millisecond {
				t.Fatal(d)
			}
		}},
		"sessions": {zkserver.Config{MaxSessions: 3}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			first := dialMem(t, n, s.Addr())
			first.connect()
			dialMem(t, n, s.Addr()).connect()
			r := dialMem(t, n, s.Addr()) // the good client has the third
			r.send(connectNew)
			r.eof()
			first.send("00000008 00000001 fffffff5")
			first.frame()
			dialMem(t, n, s.Addr()).connect()
		}},
		"connections": {zkserver.Config{MaxConns: 2}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			dialMem(t, n, s.Addr()).eof()
			r.nc.Close()
			synctest.Wait()
			dialMem(t, n, s.Addr()).connect()
		}},
		"watches": {zkserver.Config{MaxWatches: 10}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			many := jute.SetWatches{RelativeZxid: 1}
			for i := range 10 {
				many.Exist = append(many.Exist, fmt.Sprint("/x", i))
			}
			set := func(w *jute.Writer) { many.Encode(w, jute.OpSetWatches) }
			if code := r.ask(jute.OpSetWatches, set); code != jute.OK {
				t.Fatal(code)
			}
			if code := r.ask(jute.OpSetWatches, set); code != jute.OK { // the same ones again
				t.Fatal(code)
			}
			r.nc.Write(request(8, jute.OpAddWatch, (&jute.PathMode{Path: "/one-more"}).Encode))
			r.gone()
		}},
		"tree": {zkserver.Config{MaxTree: 100_000}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			made := 0
			for ; made < 1000; made++ {
				if code := r.ask(jute.OpCreate, creation(fmt.Sprint("/n", made), 1000, 0)); code == jute.ErrQuotaExceeded {
					break
				} else if code != jute.OK {
					t.Fatal(code)
				}
			}
			if made < 20 || made > 100 {
				t.Fatalf("%d nodes of a kilobyte in 100 KB", made)
			}
			if code := r.ask(jute.OpSetData, (&jute.SetDataRequest{Path: "/n0", Data: make([]byte, 2500), Version: -1}).Encode); code != jute.ErrQuotaExceeded {
				t.Fatal(code)
			}
			long := make([]jute.ACL, 100)
			for i := range long {
				long[i] = jute.ACL{Perms: 31, Scheme: "digest", ID: fmt.Sprint("user", i, ":x")}
			}
			if code := r.ask(jute.OpSetACL, (&jute.SetACLRequest{Path: "/n0", ACL: long, Version: -1}).Encode); code != jute.ErrQuotaExceeded {
				t.Fatal(code)
			}
			// The embedder's own nodes are not refused, and what is given up can be taken again.
			if _, err := s.Create("/own", make([]byte, 5000), zkserver.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete("/own", -1); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if code := r.ask(jute.OpDelete, (&jute.PathVersion{Path: "/n1", Version: -1}).Encode); code != jute.OK {
					t.Fatal(code)
				}
				if code := r.ask(jute.OpCreate, creation("/n1", 1000, 0)); code != jute.OK {
					t.Fatal(code)
				}
			}
			// A transaction that fails weighs nothing.
			for range 200 {
				if code := r.ask(jute.OpMulti, func(w *jute.Writer) {
					jute.EncodeMulti(w, []jute.Op{{Code: jute.OpDelete, Path: "/n1", Version: -1}, {Code: jute.OpCreate, Path: "/n1", Data: make([]byte, 500), ACL: jute.OpenACL()},
						{Code: jute.OpCheck, Path: "/none"}})
				}); code != jute.OK {
					t.Fatal(code)
				}
			}
			if code := r.ask(jute.OpSetData, (&jute.SetDataRequest{Path: "/n1", Data: make([]byte, 1001), Version: -1}).Encode); code != jute.OK {
				t.Fatal(code)
			}
		}},
		"credentials": {zkserver.Config{}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			r := dialMem(t, n, s.Addr())
			r.connect()
			if code := r.ask(jute.OpAuth, (&jute.AuthPacket{Scheme: "digest", Auth: append(make([]byte, 5000), ':')}).Encode); code != jute.ErrAuthFailed {
				t.Fatal(code)
			}
			r.eof()
		}},
		"large requests together": {zkserver.Config{FrameTimeout: 3 * time.Second, MaxIncoming: jute.DefaultMaxFrame + jute.FrameSlack}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			frame := request(1, jute.OpCreate, creation("/large", 700_000, 0))
			hog := dialMem(t, n, s.Addr())
			hog.connect()
			hog.nc.Write(frame[:100_000]) // and no more
			synctest.Wait()
			r := dialMem(t, n, s.Addr())
			r.connect()
			go r.nc.Write(frame)
			began := time.Now()
			var h jute.ReplyHeader
			h.Decode(jute.NewReader(r.frame()))
			if d := time.Since(began); h.Err != jute.OK || d != 3*time.Second {
				t.Fatalf("%v after %v; as soon as the other one's time was up it should be", h.Err, d)
			}
		}},
		"many that do not read": {zkserver.Config{MaxOutgoing: 3 << 20}, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
			if _, err := s.Create("/big", make([]byte, 200_000), zkserver.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			get := request(1, jute.OpGetData, (&jute.PathWatch{Path: "/big"}).Encode)
			for range 10 {
				r := dialMem(t, n, s.Addr())
				r.connect()
				for range 100 {
					r.nc.Write(get)
				}
			}
			synctest.Wait()
			// Beyond the limit each connection may have one answer more.
			if q := s.Queued(); q < 3<<20 || q > 3<<20+11*300_000 {
				t.Fatalf("%d bytes wait", q)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, c.cfg, func(t *testing.T, n *memnet.Network, s *zkserver.Server) {
				good := dialMem(t, n, s.Addr())
				if name != "connections" {
					good.connect()
				}
				c.f(t, n, s)
				if name != "connections" {
					good.send(ping)
					if id := int32(binary.BigEndian.Uint32(good.frame())); id != jute.XidPing {
						t.Fatal(id)
					}
				} else {
					good.nc.Close()
				}
				s.DropConnections()
				synctest.Wait()
				if q := s.Queued(); q != 0 {
					t.Fatalf("%d bytes wait for nobody", q)
				}
			})
		})
	}
}

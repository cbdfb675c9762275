package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// talk is one conversation as a client would have it: what opens it, then
// requests. Attacks send it as it is, or spoilt.
type talk struct {
	address string
	hello   []byte
	frames  [][]byte
	framed  bool // the first four bytes of a frame are its length
}

// counts are what an attack has done so far.
type counts struct {
	connections, refused, frames, sent, received atomic.Int64
}

// attacker is one listener's enemy.
type attacker struct {
	talk  func(*rand.Rand, *picture) talk
	pic   *atomic.Pointer[picture]
	n     counts
	slows chan struct{} // connections that are held for seconds take one of these
	deafs chan struct{}
	wg    sync.WaitGroup
}

// maxSlow and maxDeaf bound the slow writers and the clients that never read, at one time. The latter send as fast as they can.
const (
	maxSlow = 200
	maxDeaf = 4
)

func (a *attacker) dial(ctx context.Context, address string) net.Conn {
	d := net.Dialer{Timeout: 5 * time.Second}
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		a.n.refused.Add(1)
		pause(ctx, time.Millisecond)
		return nil
	}
	a.n.connections.Add(1)
	if t, ok := nc.(*net.TCPConn); ok {
		// A reset at the end leaves no port waiting: there are some hundred thousand ends.
		_ = t.SetLinger(0)
	}
	return nc
}

// pause waits for d or the end.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// run attacks until ctx ends.
func (a *attacker) run(ctx context.Context, seed uint64, workers int) {
	for i := range workers {
		a.wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil {
				a.once(ctx, r)
			}
		})
	}
	a.wg.Wait()
}

func (a *attacker) once(ctx context.Context, r *rand.Rand) {
	t := a.talk(r, a.pic.Load())
	switch n := r.IntN(100); {
	case n < 20:
		a.send(ctx, t, t.hello, t.frames)
	case n < 70: // damage in some frames
		frames := make([][]byte, len(t.frames))
		for i, f := range t.frames {
			if frames[i] = f; chance(r, 2) {
				frames[i] = spoil(r, f, t.framed)
			}
		}
		a.send(ctx, t, t.hello, frames)
	case n < 80: // damage in the handshake
		a.send(ctx, t, spoil(r, t.hello, false), t.frames)
	case n < 88: // torn
		all := join(t)
		a.send(ctx, t, all[:r.IntN(len(all)+1)], nil)
	case n < 92: // a length that lies, and some bytes
		lie := append(append([]byte(nil), t.hello...), 0x7f, 0xff, 0xff, byte(r.Uint32()))
		a.send(ctx, t, append(lie, noise(r, r.IntN(4096))...), nil)
	case n < 94:
		a.send(ctx, t, noise(r, 1+r.IntN(512)), nil)
	case n < 97:
		all := join(t)
		a.hold(a.slows, func() { a.slow(ctx, t.address, all) })
	default:
		a.hold(a.deafs, func() { a.deaf(ctx, t) })
	}
}

// hold runs f beside the others, unless there are too many such.
func (a *attacker) hold(room chan struct{}, f func()) {
	select {
	case room <- struct{}{}:
		a.wg.Go(func() {
			defer func() { <-room }()
			f()
		})
	default:
	}
}

func join(t talk) []byte {
	all := append([]byte(nil), t.hello...)
	for _, f := range t.frames {
		all = append(all, f...)
	}
	return all
}

// send writes a whole conversation and reads for a moment what comes back.
func (a *attacker) send(ctx context.Context, t talk, hello []byte, frames [][]byte) {
	nc := a.dial(ctx, t.address)
	if nc == nil {
		return
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	_ = nc.SetDeadline(time.Now().Add(2 * time.Second))
	all := append([]byte(nil), hello...)
	for _, f := range frames {
		all = append(all, f...)
	}
	n, err := nc.Write(all)
	a.n.sent.Add(int64(n))
	a.n.frames.Add(int64(len(frames)))
	if err != nil {
		return
	}
	// Some answers take their time; most come at once, or the connection ends.
	buf := make([]byte, 16<<10)
	for wait := 200 * time.Millisecond; ; wait = 2 * time.Millisecond {
		_ = nc.SetReadDeadline(time.Now().Add(wait))
		n, err := nc.Read(buf)
		a.n.received.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// slow writes a conversation byte by byte, for ten seconds at most.
func (a *attacker) slow(ctx context.Context, address string, all []byte) {
	nc := a.dial(ctx, address)
	if nc == nil {
		return
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	for i := range all {
		if _, err := nc.Write(all[i : i+1]); err != nil {
			return
		}
		if pause(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return
		}
	}
}

// deaf writes a conversation's requests again and again and reads nothing,
// until the other side takes no more, and stays for a while.
func (a *attacker) deaf(ctx context.Context, t talk) {
	nc := a.dial(ctx, t.address)
	if nc == nil {
		return
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	if tc, ok := nc.(*net.TCPConn); ok {
		_ = tc.SetReadBuffer(4 << 10)
	}
	if _, err := nc.Write(t.hello); err != nil {
		return
	}
	end := time.Now().Add(5 * time.Second)
	_ = nc.SetWriteDeadline(end)
	for len(t.frames) > 0 && ctx.Err() == nil && time.Now().Before(end) {
		for _, f := range t.frames {
			n, err := nc.Write(f)
			a.n.sent.Add(int64(n))
			if err != nil {
				pause(ctx, time.Until(end))
				return
			}
			a.n.frames.Add(1)
		}
	}
}

// crowd opens n connections and keeps them: a third says nothing, a third half
// of its greeting, a third all of it, and nothing after that.
func (a *attacker) crowd(ctx context.Context, seed uint64, n int) (open int, closeAll func()) {
	r := rand.New(rand.NewPCG(seed, 1<<32))
	var held []net.Conn
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		t := a.talk(r, a.pic.Load())
		nc := a.dial(ctx, t.address)
		if nc == nil {
			continue
		}
		held = append(held, nc)
		if len(t.hello) > 0 && i%3 > 0 {
			_, _ = nc.Write(t.hello[:len(t.hello)/(3-i%3)])
		}
	}
	return len(held), func() {
		for _, nc := range held {
			nc.Close()
		}
	}
}

// alive has a well-behaved client ask one thing on a connection of its own.
func alive(ctx context.Context, t talk, limit time.Duration) error {
	d := net.Dialer{Timeout: limit}
	nc, err := d.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := nc.Write(join(t)); err != nil {
		return err
	}
	var answer [16]byte
	_, err = io.ReadFull(nc, answer[:])
	return err
}

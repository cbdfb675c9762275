package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// siege is how the listeners of a running cluster are attacked.
type siege struct {
	names   []string
	each    time.Duration
	seed    uint64
	workers int
	crowd   int   // idle connections held meanwhile
	maxRSS  int64 // bytes
	// patience is how long a good client may wait.
	patience time.Duration
}

// sieges are the listeners: how to talk to each, and what a good client asks.
var sieges = map[string]struct {
	talk func(*rand.Rand, *picture) talk
	good func(*picture) talk
}{
	"rpc":       {rpcTalk, goodRPC},
	"zookeeper": {zkTalk, goodZooKeeper},
	"control":   {controlTalk, goodControl},
}

func goodRPC(pic *picture) talk {
	t := talk{address: pic.Server, hello: wire.AppendPreamble(nil, wire.AuthSimple)}
	service := "ClientService"
	hello, err := wire.AppendConnectionHeader(t.hello, &pb.ConnectionHeader{ServiceName: &service})
	if err != nil {
		return t
	}
	t.hello = hello
	region := &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte("none")}
	frame, err := wire.AppendRequest(nil, &wire.Request{CallID: 1, Method: "Get", Param: &pb.GetRequest{Region: region, Get: &pb.Get{Row: []byte("r")}}})
	if err == nil {
		t.frames = [][]byte{frame}
	}
	return t
}

func goodZooKeeper(pic *picture) talk {
	var w jute.Writer
	mark := w.BeginFrame()
	(&jute.ConnectRequest{TimeoutMs: 4000, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: true}).Encode(&w)
	w.EndFrame(mark)
	return talk{address: pic.ZooKeeper, hello: w.Bytes()}
}

func goodControl(pic *picture) talk {
	t := talk{address: strings.TrimPrefix(pic.Control, "http://")}
	t.frames = [][]byte{[]byte("GET /status HTTP/1.1\r\nHost: " + t.address + "\r\n\r\n")}
	return t
}

// run attacks each listener, one after another, each of a fresh cluster.
func (s siege) run(ctx context.Context, out io.Writer) error {
	for _, name := range s.names {
		if err := s.one(ctx, name, out); err != nil {
			return fmt.Errorf("%s listener (seed %d): %w", name, s.seed, err)
		}
	}
	return nil
}

// victim is the cluster's process.
type victim struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	errs bytes.Buffer
	done chan error
}

func startVictim() (*victim, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	v := &victim{cmd: exec.Command(self, "-serve"), done: make(chan error, 1)}
	v.cmd.Stderr = &v.errs
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	pipe, err := v.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	v.out = bufio.NewScanner(pipe)
	v.out.Buffer(nil, 1<<20)
	return v, v.cmd.Start()
}

// tell reads the next line, for a minute and a half at most.
func (v *victim) tell() (*picture, error) {
	type answer struct {
		pic *picture
		err error
	}
	c := make(chan answer, 1)
	go func() {
		if !v.out.Scan() {
			c <- answer{err: errors.New("the cluster has ended")}
			return
		}
		pic := new(picture)
		c <- answer{pic, json.Unmarshal(v.out.Bytes(), pic)}
	}()
	t := time.NewTimer(90 * time.Second)
	defer t.Stop()
	select {
	case a := <-c:
		return a.pic, a.err
	case <-t.C:
		return nil, errors.New("the cluster has not answered its driver for 90 s")
	}
}

func (v *victim) ask(cmd string) (*picture, error) {
	if _, err := io.WriteString(v.in, cmd+"\n"); err != nil {
		return nil, err
	}
	return v.tell()
}

// end closes the cluster's input and waits for its end.
func (v *victim) end() error {
	v.in.Close()
	t := time.AfterFunc(time.Minute, func() { _ = v.cmd.Process.Kill() })
	defer t.Stop()
	return v.cmd.Wait()
}

// last keeps what the cluster said when it died, and says where.
func (v *victim) last() string {
	text := v.errs.Bytes()
	if i := bytes.Index(text, []byte("panic:")); i >= 0 {
		text = text[i:]
	}
	f, err := os.CreateTemp("", "fuzzall-*.txt")
	if err != nil {
		return string(text[:min(len(text), 4000)])
	}
	defer f.Close()
	if _, err := f.Write(v.errs.Bytes()); err != nil {
		return string(text[:min(len(text), 4000)])
	}
	return fmt.Sprintf("%s\n(all of it: %s)", text[:min(len(text), 4000)], f.Name())
}

// renewEvery bounds what stays in the cluster of the requests that succeed.
const renewEvery = 10 * time.Second

func (s siege) one(ctx context.Context, name string, out io.Writer) (err error) {
	v, err := startVictim()
	if err != nil {
		return err
	}
	defer func() {
		if e := v.end(); e != nil {
			err = errors.Join(err, fmt.Errorf("the cluster's end: %w\n%s", e, v.last()))
		}
	}()
	first, err := v.tell()
	if err != nil {
		return err
	}
	var pic atomic.Pointer[picture]
	pic.Store(first)
	how := sieges[name]
	a := &attacker{talk: how.talk, pic: &pic, slows: make(chan struct{}, maxSlow), deafs: make(chan struct{}, maxDeaf)}
	resting, _, err := memory(v.cmd.Process.Pid)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.each)
	defer cancel()
	began := time.Now()
	open, leave := a.crowd(ctx, s.seed, s.crowd)
	attacking := make(chan struct{})
	go func() { a.run(ctx, s.seed, s.workers); close(attacking) }()
	slowest, err := s.watch(ctx, v, &pic, how.good)
	cancel()
	<-attacking
	leave()
	took := time.Since(began)
	if err != nil {
		// What everybody is doing says most about why nobody answers.
		if v.cmd.Process.Signal(syscall.SIGQUIT) == nil {
			pause(context.Background(), time.Second)
		}
		return err
	}
	after, err := v.settle(first)
	if err != nil {
		return err
	}
	now, peak, err := memory(v.cmd.Process.Pid)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "fuzz %-9s listener: %d conversations (%d not let in), %d requests, %d KiB out, %d KiB back in %v; %d idle connections held; "+
		"slowest answer to a good client %v; memory %d MiB at first, %d MiB at most, %d MiB after; %d goroutines at first, %d after\n",
		name, a.n.connections.Load(), a.n.refused.Load(), a.n.frames.Load(), a.n.sent.Load()>>10, a.n.received.Load()>>10, took.Round(time.Second), open,
		slowest.Round(time.Millisecond), resting>>20, peak>>20, now>>20, first.Goroutines, after.Goroutines)
	if peak > s.maxRSS {
		return fmt.Errorf("%d MiB of memory, more than %d MiB", peak>>20, s.maxRSS>>20)
	}
	return nil
}

// watch renews the cluster now and then and sees that a good client is served,
// until ctx ends. It gives the longest time such a client waited.
func (s siege) watch(ctx context.Context, v *victim, pic *atomic.Pointer[picture], good func(*picture) talk) (slowest time.Duration, err error) {
	renewed := time.Now()
	for {
		if pause(ctx, 500*time.Millisecond); ctx.Err() != nil {
			return slowest, nil
		}
		if time.Since(renewed) > renewEvery {
			p, err := v.ask(cmdRenew)
			if err != nil {
				return slowest, fmt.Errorf("renewing: %w", err)
			}
			pic.Store(p)
			renewed = time.Now()
		}
		began := time.Now()
		var last error
		for time.Since(began) < s.patience {
			// A fault that a request asked for, or a listener that is full for the moment, is tried again.
			if last = alive(ctx, good(pic.Load()), s.patience/3); last == nil || ctx.Err() != nil {
				break
			}
			pause(ctx, 50*time.Millisecond)
			if _, err := v.ask(cmdRenew); err != nil {
				return slowest, fmt.Errorf("renewing: %w", err)
			}
		}
		if last != nil && ctx.Err() == nil {
			return slowest, fmt.Errorf("a good client was not served for %v: %w", time.Since(began).Round(time.Second), last)
		}
		slowest = max(slowest, time.Since(began))
	}
}

// settle waits until the connections' goroutines are gone, for a minute: what a
// listener allows a silent client takes some seconds to run out.
func (v *victim) settle(first *picture) (*picture, error) {
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := v.ask(cmdRenew); err != nil {
			return nil, err
		}
		p, err := v.ask(cmdLook)
		if err != nil {
			return nil, err
		}
		// A server that was added has some of its own.
		if p.Goroutines <= first.Goroutines+first.Goroutines/4+8+8*(p.Servers-first.Servers) {
			return p, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d goroutines a minute after the attack, %d before it", p.Goroutines, first.Goroutines)
		}
		pause(context.Background(), 200*time.Millisecond)
	}
}

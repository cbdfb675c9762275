//go:build interop

// Command worker is the client of package hbase as one contender among others:
// it does what lines on its standard input say, and answers each with a line of
// JSON. PeerBench.java is the same for HBase's Java client.
//
//	get|put|increment  callers= seconds= table= rows=    closed loop
//	bulk               mode=mutator|batch callers= rows= table=
//	scan               mode=plain|reuse|lockstep|parallel|parallel-reuse|ordered table=
//	cold               table=                            a new client's first Get
//	herd               callers= rows= table=             a new client, everybody at once
//	routes             table= rows= other=               heap per route
//	start              name= kind=get|increment|scan callers= table= rows= regions=
//	count              name=                             what has been acked so far
//	stop               name=
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// args are the key=value words of a command.
type args map[string]string

func (a args) int(key string, def int) int {
	if v, ok := a[key]; ok {
		if n, err := strconv.Atoi(v); err == nil {
			return n
		}
	}
	return def
}

func (a args) seconds() time.Duration { return time.Duration(a.int("seconds", 1)) * time.Second }

type answer map[string]any

func main() {
	w := &worker{address: os.Args[1], running: map[string]*load{}}
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		words := strings.Fields(in.Text())
		if len(words) == 0 {
			continue
		}
		a := args{}
		for _, word := range words[1:] {
			if k, v, ok := strings.Cut(word, "="); ok {
				a[k] = v
			}
		}
		res, err := w.do(words[0], a)
		if err != nil {
			res = answer{"error": err.Error()}
		}
		if err := out.Encode(res); err != nil {
			os.Exit(1)
		}
	}
}

type worker struct {
	address string
	client  *hbase.Client
	running map[string]*load
}

func (w *worker) do(command string, a args) (answer, error) {
	switch command {
	case "cold":
		return w.cold(a)
	case "herd":
		return w.herd(a)
	case "routes":
		return w.routes(a)
	}
	if w.client == nil {
		c, err := open(w.address)
		if err != nil {
			return nil, err
		}
		w.client = c
	}
	t, err := w.client.Table(a["table"])
	if err != nil && command != "stop" && command != "count" {
		return nil, err
	}
	switch command {
	case "get", "put", "increment":
		l := startLoad(t, command, a.int("callers", 1), a.int("rows", 1000), 0)
		<-time.After(a.seconds())
		return l.stop(), nil
	case "bulk":
		return bulk(t, a)
	case "scan":
		return scan(t, a)
	case "start":
		w.running[a["name"]] = startLoad(t, a["kind"], a.int("callers", 1), a.int("rows", 1000), a.int("regions", 0))
		return answer{}, nil
	case "count":
		l, ok := w.running[a["name"]]
		if !ok {
			return nil, fmt.Errorf("no load %q", a["name"])
		}
		return answer{"acked": l.acked()}, nil
	case "stop":
		l, ok := w.running[a["name"]]
		if !ok {
			return nil, fmt.Errorf("no load %q", a["name"])
		}
		delete(w.running, a["name"])
		return l.stop(), nil
	}
	return nil, fmt.Errorf("unknown command %q", command)
}

// cost is what the process has used up.
type cost struct {
	cpu    time.Duration
	allocs uint64
	bytes  uint64
}

func spent() cost {
	var u syscall.Rusage
	// It fails only for a wrong argument.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return cost{time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs, m.TotalAlloc}
}

// per adds what n operations have cost since before.
func (before cost) per(n uint64, a answer) answer {
	after := spent()
	if n > 0 {
		a["cpu_s_per_100k"] = (after.cpu - before.cpu).Seconds() / float64(n) * 1e5
		a["allocs_per_op"] = float64(after.allocs-before.allocs) / float64(n)
		a["bytes_per_op"] = float64(after.bytes-before.bytes) / float64(n)
	}
	return a
}

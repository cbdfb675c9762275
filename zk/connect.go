package zk

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// connector finds a server for one session: laps over the addresses until one serves it, or says it is gone, or ctx ends.
//
// A lap resolves all names at once, opens TCP connections with a stagger between them, and sends the handshake on one connection at a time:
// the same session offered to two servers would move from one to the other. A connection without a handshake is harmless; servers drop it
// after about 10 s.
type connector struct {
	cfg    *Config
	log    *slog.Logger
	ledger *ledger
	wg     *sync.WaitGroup // of the Conn: every goroutine is counted

	hosts    []string // in the order to try
	session  int64    // 0: ask for a new one
	password []byte
	zxid     int64         // newest seen
	timeout  time.Duration // for the arithmetic: negotiated, or requested before the first session
	deadline time.Time     // when the budget ends

	failedLaps int // laps that count as failed already
}

// established is a connection with a session on it.
type established struct {
	nc     net.Conn
	br     *bufio.Reader
	resp   jute.ConnectResponse
	host   string
	addr   string
	sentAt time.Time // when the handshake was sent
}

// errExpired ends a connector for good.
var errExpired = errors.New("the server says the session is gone")

const (
	attemptFloor  = 200 * time.Millisecond // below, a healthy but busy server would be given up
	firstPatience = time.Second            // for a handshake on the first lap, while another server is at hand; doubles per lap
	maxDialTime   = 10 * time.Second       // two or three SYNs
	maxLapPause   = 2 * time.Second
)

// run returns a served session, or the reason there cannot be one: errExpired or ctx's error.
func (k *connector) run(ctx context.Context) (*established, error) {
	for lap := k.failedLaps; ; lap++ {
		if lap > 0 {
			t := time.NewTimer(k.pause(lap - 1))
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return nil, ctx.Err()
			}
		}
		est, err := k.lap(ctx, lap-k.failedLaps)
		if est != nil || errors.Is(err, errExpired) {
			return est, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// pause is the jitter after a full failed lap. It never costs more than a tenth of what is left of the budget.
func (k *connector) pause(lap int) time.Duration {
	top := min(time.Second<<min(lap, 8), maxLapPause)
	if left := time.Until(k.deadline); left > 0 {
		top = min(top, left/10)
	}
	// A lap of refusals takes no time at all, and the closer the deadline the shorter the tenth: neither may become a storm.
	least := min(time.Duration(lap+1)*20*time.Millisecond, 250*time.Millisecond)
	return least + time.Duration(k.cfg.Rand()*float64(max(top-least, 0)))
}

// remaining is what is left of the budget minus the safety margin; never negative.
func (k *connector) remaining() time.Duration {
	return max(0, time.Until(k.deadline)-SafetyMargin(k.timeout))
}

// ceiling bounds every single attempt, inside the budget and beyond it.
func (k *connector) ceiling() time.Duration {
	return min(max(k.timeout/3, attemptFloor), maxDialTime)
}

// patience is how long a handshake may take while another server waits: its share of the budget, or, when there is nothing
// left to save, a time that grows with every lap.
func (k *connector) patience(lap, untried int) time.Duration {
	most := min(firstPatience<<min(lap, 8), k.ceiling())
	if left := k.remaining(); left > 0 {
		return AttemptLimit(left, untried, attemptFloor, most)
	}
	return most
}

type target struct {
	host string // as configured
	name string
	addr string
}

type socket struct {
	target
	nc net.Conn
	br *bufio.Reader
}

// lapEvent is what the helpers of a lap report.
type lapEvent struct {
	targets []target     // a name resolved (possibly to nothing)
	dialed  bool         // a dial ended
	sock    *socket      // ... well
	shook   bool         // the handshake ended
	est     *established // ... well
	err     error
}

// lap tries every address once. It returns nil, nil if all failed.
func (k *connector) lap(parent context.Context, lap int) (*established, error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	events := make(chan lapEvent)
	report := func(e lapEvent) bool {
		select {
		case events <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	goes := func(f func()) {
		k.wg.Add(1)
		go func() { defer k.wg.Done(); f() }()
	}

	resolving, dialing := 0, 0
	var todo []target
	for _, host := range k.hosts {
		name, port, _ := net.SplitHostPort(host)
		if net.ParseIP(name) != nil {
			todo = append(todo, target{host, name, host})
			continue
		}
		resolving++
		goes(func() { report(lapEvent{targets: k.resolve(ctx, host, name, port)}) })
	}
	var ready []*socket
	var shaking *socket
	defer func() {
		for _, s := range ready {
			s.nc.Close()
		}
	}()

	stagger := time.NewTimer(0)
	defer stagger.Stop()
	mayDial := false
	patience := time.NewTimer(time.Hour)
	patience.Stop()
	defer patience.Stop()
	impatient := false // the handshake under way has had its share of the budget
	for {
		for mayDial && len(todo) > 0 {
			t := todo[0]
			todo = todo[1:]
			dialing++
			goes(func() {
				s := k.dial(ctx, t)
				if !report(lapEvent{dialed: true, sock: s}) && s != nil {
					s.nc.Close()
				}
			})
			mayDial = false
			stagger.Reset(k.cfg.DialStagger)
		}
		if shaking != nil && impatient && len(ready) > 0 {
			// It may still answer, but another server is waiting and the budget is not for standing still.
			shaking.nc.SetReadDeadline(time.Now())
		}
		if shaking == nil && len(ready) > 0 {
			shaking, ready = ready[0], ready[1:]
			untried := 1 + len(ready) + dialing + len(todo) + resolving
			impatient = false
			patience.Reset(k.patience(lap, untried))
			s := shaking
			goes(func() {
				est, err := k.handshake(ctx, s)
				if !report(lapEvent{shook: true, est: est, err: err}) {
					s.nc.Close()
				}
			})
		}
		if resolving == 0 && dialing == 0 && len(todo) == 0 && shaking == nil {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-stagger.C:
			mayDial = true
		case <-patience.C:
			impatient = true
		case e := <-events:
			switch {
			case e.dialed:
				dialing--
				if e.sock != nil {
					ready = append(ready, e.sock)
				} else {
					mayDial = true // a failure needs no stagger behind it
				}
			case e.shook:
				patience.Stop()
				if e.est != nil {
					e.est.nc.SetDeadline(time.Time{}) // here, because impatience may have set one meanwhile
					return e.est, nil
				}
				if errors.Is(e.err, errExpired) {
					return nil, e.err
				}
				shaking = nil
			default:
				resolving--
				todo = append(todo, e.targets...)
			}
		}
	}
}

func (k *connector) note(began time.Time, t target, p Phase, err error, o Outcome) {
	a := Attempt{At: began, Took: time.Since(began), Host: t.host, Addr: t.addr, Phase: p, Outcome: o, Err: err}
	k.ledger.add(a)
	if err != nil {
		k.log.Info("attempt to connect failed", "host", a.Host, "addr", a.Addr, "phase", p.String(), "outcome", o.String(), "took", a.Took, "err", err)
	}
}

func (k *connector) resolve(ctx context.Context, host, name, port string) []target {
	began := time.Now()
	lctx, cancel := context.WithTimeout(ctx, k.ceiling())
	defer cancel()
	addrs, err := k.cfg.LookupHost(lctx, name)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no addresses", Name: name, IsNotFound: true}
	}
	if err != nil {
		if ctx.Err() == nil {
			k.note(began, target{host: host}, PhaseResolve, err, OutcomeUnresolved)
		}
		return nil
	}
	var out []target
	for _, a := range addrs[:min(len(addrs), k.cfg.MaxAddrsPerHost)] {
		out = append(out, target{host, name, net.JoinHostPort(a, port)})
	}
	return out
}

// dial opens one TCP connection and speaks TLS on it if asked to; nil after noting a failure.
func (k *connector) dial(ctx context.Context, t target) *socket {
	began := time.Now()
	dctx, cancel := context.WithTimeout(ctx, k.ceiling())
	defer cancel()
	nc, err := k.cfg.Dial(dctx, "tcp", t.addr)
	phase := PhaseDial
	if err == nil && k.cfg.TLS != nil {
		phase = PhaseTLS
		conf := k.cfg.TLS
		if conf.ServerName == "" && !conf.InsecureSkipVerify {
			conf = conf.Clone()
			conf.ServerName = t.name
		}
		tc := tls.Client(nc, conf)
		if err = tc.HandshakeContext(dctx); err != nil {
			nc.Close()
		}
		nc = tc
	}
	if err != nil {
		if ctx.Err() == nil {
			if dctx.Err() != nil {
				err = fmt.Errorf("%w (%w)", dctx.Err(), err)
			}
			k.note(began, t, phase, err, outcomeOf(phase, err))
		}
		return nil
	}
	return &socket{target: t, nc: nc, br: bufio.NewReaderSize(nc, 4096)}
}

// handshake offers the session on one connection and waits for the answer until the ceiling, or until the lap sets an earlier read deadline.
func (k *connector) handshake(ctx context.Context, s *socket) (*established, error) {
	began := time.Now()
	stop := context.AfterFunc(ctx, func() { s.nc.Close() })
	est, err := k.exchange(s, began)
	if !stop() {
		return nil, ctx.Err()
	}
	if err == nil {
		k.note(began, s.target, PhaseHandshake, nil, OutcomeConnected)
		return est, nil
	}
	s.nc.Close()
	o := outcomeOf(PhaseHandshake, err)
	if errors.Is(err, errExpired) {
		o = OutcomeExpired
	}
	k.note(began, s.target, PhaseHandshake, err, o)
	return nil, err
}

func (k *connector) exchange(s *socket, began time.Time) (*established, error) {
	s.nc.SetDeadline(began.Add(k.ceiling()))
	password := k.password
	if len(password) == 0 {
		password = make([]byte, 16)
	}
	req := jute.ConnectRequest{LastZxidSeen: k.zxid, TimeoutMs: int32(k.cfg.SessionTimeout.Milliseconds()), SessionID: k.session, Password: password, HasReadOnly: true}
	var w jute.Writer
	mark := w.BeginFrame()
	req.Encode(&w)
	w.EndFrame(mark)
	_, werr := s.nc.Write(w.Bytes())
	// Even if the peer has hung up already, what it said before tells a ZooKeeper from something else.
	// A ConnectResponse has 37 bytes, or 36 from a server before 3.4; whatever announces much more is something else.
	frame, err := jute.ReadFrame(s.br, 256)
	if fe := (*jute.FrameError)(nil); werr != nil && !errors.As(err, &fe) {
		return nil, werr
	}
	if err != nil {
		return nil, err
	}
	est := &established{nc: s.nc, br: s.br, host: s.host, addr: s.addr, sentAt: began}
	r := jute.NewReader(frame)
	est.resp.Decode(r)
	est.resp.Password = append([]byte(nil), est.resp.Password...)
	switch {
	case r.Err() != nil:
		return nil, r.Err()
	case est.resp.TimeoutMs <= 0 && k.session != 0:
		return nil, errExpired
	case est.resp.TimeoutMs <= 0:
		return nil, fmt.Errorf("a new session was refused with timeout %d", est.resp.TimeoutMs)
	case k.session != 0 && est.resp.SessionID != k.session:
		return nil, fmt.Errorf("session 0x%x was answered with session 0x%x", uint64(k.session), uint64(est.resp.SessionID))
	}
	return est, nil
}

package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/zk"
)

// OpenZooKeeper makes a registry over ZooKeeper. It does not wait for the
// ensemble: the first question does.
func OpenZooKeeper(cfg ZooKeeperConfig) (Registry, error) {
	zcfg := zk.Config{
		Servers: cfg.Servers, SessionTimeout: cfg.SessionTimeout, Dial: cfg.Dial, Logger: cfg.Logger,
	}
	if zcfg.SessionTimeout == 0 {
		zcfg.SessionTimeout = DefaultSessionTimeout
	}
	if zcfg.Logger == nil {
		zcfg.Logger = slog.New(slog.DiscardHandler)
	}
	return newZKRegistry(cfg.ZNodeParent, cfg.Servers, func() (zkConn, error) {
		c, err := zk.New(zcfg)
		if err != nil {
			return nil, fmt.Errorf("ZooKeeper: %w", err)
		}
		return zkSession{c}, nil
	}), nil
}

// zkSession fits a zk.Conn to what the registry needs.
type zkSession struct{ c *zk.Conn }

func (s zkSession) get(ctx context.Context, path string) ([]byte, error) {
	data, _, err := s.c.Get(ctx, path)
	return data, zkError(err)
}

func (s zkSession) children(ctx context.Context, path string) ([]string, error) {
	names, _, err := s.c.Children(ctx, path)
	return names, zkError(err)
}

func (s zkSession) trouble() error {
	state := s.c.State()
	if state == zk.StateConnected {
		return nil
	}
	return &EnsembleError{State: state, Attempts: s.c.Attempts()}
}

// EnsembleError says that no ZooKeeper server serves us at the moment.
type EnsembleError struct {
	State zk.State
	// Attempts to connect, oldest first.
	Attempts []zk.Attempt
}

// Error tells the last attempt at each server, and what it usually means.
func (e *EnsembleError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no session with ZooKeeper (%v)", e.State)
	seen := map[string]bool{}
	for _, a := range slices.Backward(e.Attempts) {
		if a.Outcome == zk.OutcomeConnected || seen[a.Host] {
			continue
		}
		seen[a.Host] = true
		fmt.Fprintf(&b, "; %v", a)
		if advice := a.Outcome.Advice(); advice != "" && len(seen) == 1 {
			fmt.Fprintf(&b, " (%s)", advice)
		}
	}
	if len(seen) == 0 {
		b.WriteString("; the first attempt is under way")
	}
	return b.String()
}

// closeTimeout bounds the polite goodbye to the server. Nothing depends on it:
// the session holds no ephemeral znode.
const closeTimeout = time.Second

func (s zkSession) close() {
	//holdfast:allow context the goodbye has a time of its own, whoever closes
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = s.c.Close(ctx) // an error means that the goodbye was not heard
}

func zkError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return errNoNode
	case errors.Is(err, zk.ErrSessionExpired), errors.Is(err, zk.ErrClosed), errors.Is(err, zk.ErrAuthFailed):
		return fmt.Errorf("%w: %w", errSessionOver, err)
	}
	return err
}

package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

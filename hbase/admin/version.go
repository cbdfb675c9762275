package admin

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// version asks the master for its release.
func (a *Admin) version(ctx context.Context, op string) (major, minor int, err error) {
	s, err := a.status(ctx, op, []pb.Option{pb.Option_HBASE_VERSION})
	if err != nil {
		return 0, 0, err
	}
	major, minor, ok := parseVersion(s.Version)
	if !ok {
		return 0, 0, fault.Wrap(op, "", &fault.Unreadable{Err: fmt.Errorf("the master says its version is %q", s.Version)})
	}
	return major, minor, nil
}

// needs is ErrUnsupported if the master is older than that. It is for what an
// older one would not refuse but do otherwise, because it skips fields it does
// not know.
func (a *Admin) needs(ctx context.Context, op, what string, major, minor int) error {
	haveMajor, haveMinor, err := a.version(ctx, op)
	if err != nil {
		return err
	}
	if haveMajor > major || haveMajor == major && haveMinor >= minor {
		return nil
	}
	return &fault.Error{Op: op, Err: &fault.Unsupported{What: what, Versions: fmt.Sprintf("%d.%d and later", major, minor)}}
}

// parseVersion reads the beginning of 2.6.4, 3.0.0-beta-1, 2.4.
func parseVersion(text string) (major, minor int, ok bool) {
	first, rest, ok := strings.Cut(text, ".")
	if !ok {
		return 0, 0, false
	}
	second, _, _ := strings.Cut(rest, ".")
	second, _, _ = strings.Cut(second, "-")
	major, err1 := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	return major, minor, err1 == nil && err2 == nil && major >= 0 && minor >= 0
}

package catalog

import (
	"strings"
	"sync"

	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// SettingThrottleOff is set while throttling is switched off.
const SettingThrottleOff = "switch.throttle.off"

// The rows of hbase:quota for all region servers together, and of the switch
// by which other limits may be exceeded.
const (
	serverQuotaRow = "r.all"
	exceedQuotaRow = "exceedThrottleQuota"
	quotaColumn    = "s"
)

// maxThrottled bounds the pairs of user and table that throttles are remembered
// for.
const maxThrottled = 10_000

// Throttles reads the throttles, and what tables use of their space quotas, out
// of hbase:quota: once per change of the catalog.
type Throttles struct {
	catalog *Catalog

	mu     sync.Mutex
	state  *State
	quotas map[string]parsedQuotas       // by row and column
	lists  map[[2]string][]host.Throttle // by user and table
	space  map[meta.TableName]*host.Space
}

var _ host.Quotas = (*Throttles)(nil)

// parsedQuotas are quotas and the text they were read from.
type parsedQuotas struct {
	*pb.Quotas
	text string
}

// NewThrottles makes the reader of a catalog's throttles.
func NewThrottles(c *Catalog) *Throttles { return &Throttles{catalog: c} }

// Throttles is host.Quotas.
func (t *Throttles) Throttles(user string, table meta.TableName) []host.Throttle {
	if table.IsSystem() {
		return nil
	}
	s := t.catalog.State()
	key := [2]string{user, table.String()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != s {
		t.renew(s)
	}
	list, ok := t.lists[key]
	if !ok {
		list = t.collect(s, user, table)
		if len(t.lists) < maxThrottled {
			t.lists[key] = list
		}
	}
	return list
}

// renew forgets what an earlier state of the catalog said. Quotas that have not
// changed keep their value, by which servers know what was spent of them.
func (t *Throttles) renew(s *State) {
	old := t.quotas
	t.state, t.lists, t.quotas = s, map[[2]string][]host.Throttle{}, map[string]parsedQuotas{}
	t.space = map[meta.TableName]*host.Space{}
	for table, u := range s.SpaceUsages() {
		t.space[table] = spaceOf(u)
	}
	for name, v := range s.Settings() {
		key, ok := strings.CutPrefix(name, quotaPrefix)
		if !ok || len(v) < 8 {
			continue
		}
		text, ok := strings.CutPrefix(v[8:], meta.ProtoMagic)
		if !ok {
			continue
		}
		q, ok := old[key]
		if !ok || q.text != text {
			q = parsedQuotas{new(pb.Quotas), text}
			if q.UnmarshalVT([]byte(text)) != nil {
				continue
			}
		}
		t.quotas[key] = q
	}
}

// collect finds the throttles of a user's calls on a table. A user's own for
// the table go before those for its namespace, and these before those for all
// tables.
func (t *Throttles) collect(s *State, user string, table meta.TableName) []host.Throttle {
	if len(t.quotas) == 0 || s.Setting(SettingThrottleOff) != "" {
		return nil
	}
	var out []host.Throttle
	add := func(row, column string) bool {
		key := row + "\x00" + column
		q := t.quotas[key]
		limits := q.GetThrottle()
		if limits == nil {
			return false
		}
		out = append(out, host.Throttle{Target: key, Limits: limits})
		return true
	}
	row := "u." + user
	_ = add(row, quotaColumn+"."+table.String()) || add(row, quotaColumn+"."+table.Namespace+":") || add(row, quotaColumn)
	if own := t.quotas[row+"\x00"+quotaColumn]; own.GetBypassGlobals() {
		return out
	}
	add("t."+table.String(), quotaColumn)
	add("n."+table.Namespace, quotaColumn)
	if add(serverQuotaRow, quotaColumn) && string(s.Quota(exceedQuotaRow, quotaColumn)) == "\xFF" {
		for i := range out[:len(out)-1] {
			out[i].Exceedable = true
		}
	}
	return out
}

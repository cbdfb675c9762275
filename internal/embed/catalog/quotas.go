package catalog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// QuotaTable is hbase:quota, rendered from the settings of the catalog whose
// names begin with quotaPrefix (family q) or usagePrefix (u): the row, a zero byte, the qualifier. The value
// is the time in milliseconds, 8 bytes, and the cell's value.
var QuotaTable = meta.TableName{Namespace: meta.SystemNamespace, Qualifier: "quota"}

const quotaPrefix = "quota."

// QuotaSchema is the descriptor of hbase:quota.
func QuotaSchema() *pb.TableSchema {
	return systemSchema(QuotaTable, nil, []string{"q"}, []string{"u"})
}

// AddQuotaTable adds hbase:quota if it is not there.
func AddQuotaTable(tx *Tx) {
	if tx.Table(QuotaTable) == nil {
		addSystemTable(tx, QuotaTable, QuotaSchema())
	}
}

// Quota gives the value of a settings cell of hbase:quota, nil if there is
// none.
func (s *State) Quota(row, qualifier string) []byte {
	v := s.Setting(quotaPrefix + row + "\x00" + qualifier)
	if len(v) < 8 {
		return nil
	}
	return []byte(v[8:])
}

// SetQuota stores a settings cell of hbase:quota; nil removes it.
func (tx *Tx) SetQuota(row, qualifier string, value []byte) {
	name := quotaPrefix + row + "\x00" + qualifier
	if value == nil {
		tx.SetSetting(name, "")
		return
	}
	tx.SetSetting(name, string(binary.BigEndian.AppendUint64(nil, uint64(tx.Now())))+string(value))
}

// ClearQuotas removes all cells of hbase:quota.
func (tx *Tx) ClearQuotas() {
	tx.clearSettings(quotaPrefix)
	tx.clearSettings(usagePrefix)
}

// clearSettings removes the settings whose names begin with prefix.
func (tx *Tx) clearSettings(prefix string) {
	var names []string
	for name := range tx.Settings() {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		tx.SetSetting(name, "")
	}
}

func quotaRows(s *State, start []byte, reversed bool, _ int64) iter.Seq[[]cells.Cell] {
	var all []cells.Cell
	for name, v := range s.Settings() {
		family := "q"
		key, ok := strings.CutPrefix(name, quotaPrefix)
		if !ok {
			family = "u"
			key, ok = strings.CutPrefix(name, usagePrefix)
		}
		row, qualifier, cut := strings.Cut(key, "\x00")
		if !ok || !cut || len(v) < 8 {
			continue
		}
		if at := strings.Compare(row, string(start)); start != nil && (reversed && at > 0 || !reversed && at < 0) {
			continue
		}
		all = append(all, cells.Cell{
			Row: []byte(row), Family: []byte(family), Qualifier: []byte(qualifier), Type: cells.Put,
			Timestamp: int64(binary.BigEndian.Uint64([]byte(v[:8]))), Value: []byte(v[8:]),
		})
	}
	slices.SortFunc(all, func(a, b cells.Cell) int {
		n := bytes.Compare(a.Row, b.Row)
		if reversed {
			n = -n
		}
		return cmp.Or(n, bytes.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier))
	})
	return func(yield func([]cells.Cell) bool) {
		for len(all) > 0 {
			n := 1
			for n < len(all) && bytes.Equal(all[n].Row, all[0].Row) {
				n++
			}
			if !yield(all[:n:n]) {
				return
			}
			all = all[n:]
		}
	}
}

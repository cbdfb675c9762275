package meta

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Columns of hbase:meta.
const (
	FamilyInfo  = "info"
	FamilyTable = "table"

	QualifierRegionInfo = "regioninfo"
	QualifierServer     = "server"
	QualifierStartCode  = "serverstartcode"
	QualifierSeqNum     = "seqnumDuringOpen"
	QualifierState      = "state"
	QualifierServerName = "sn"
	QualifierSplitA     = "splitA"
	QualifierSplitB     = "splitB"
	QualifierMerge      = "merge" // prefix: merge0000, merge0001, ...
)

// NoSeqNum is the open sequence number of a location that does not tell it.
const NoSeqNum int64 = -1

// Location is what one region row of hbase:meta says.
type Location struct {
	Region Region
	// Server is zero when meta names none. While a region opens or closes it
	// still names the previous server: a hint, not a promise.
	Server ServerName
	// SeqNum is seqnumDuringOpen: of two locations of one region the larger is
	// the newer; NoSeqNum if absent.
	SeqNum int64
	// State is the text of info:state ("OPEN", "OPENING", "CLOSED", ...);
	// empty before HBase 2.
	State string
	// Opener is the server that is opening the region (info:sn while the state
	// is OPENING), zero otherwise. It serves the region somewhat before the
	// master has made the state OPEN.
	Opener ServerName
	// Replicas are the secondary replicas the row names, by ascending id; nil
	// if there are none. They have no rows of their own.
	Replicas []ReplicaLocation
}

// ReplicaLocation is what a region's row says of one secondary replica, in
// columns with the suffix _ and four upper-case hex digits (server_0001).
type ReplicaLocation struct {
	// ID is 1 to 65535.
	ID int32
	// Server is zero while the replica is not assigned: then its columns exist
	// and are empty.
	Server ServerName
	SeqNum int64
	State  string
}

// maxReplicas bounds the replicas read of one row, whatever its columns are
// called; HBase tables have two or three.
const maxReplicas = 64

// ParseLocation reads the newest cells of one region row. Rows that are not a
// region's (a table's state) give ok false; a row whose region info cannot be
// read gives an error. Keys alias the cells.
func ParseLocation(row []cells.Cell) (loc Location, ok bool, err error) {
	loc.SeqNum = NoSeqNum
	ok, err = loc.parse(row)
	return loc, ok && err == nil, err
}

// LocationOf reads what the cells of a row say of a region that is known by
// other means: HBase 1.x does not write the region info again when a region
// opens, so that a row's newest cells may come without it. It is false if the
// server's address cannot be read.
func LocationOf(row []cells.Cell, region Region) (Location, bool) {
	loc := Location{SeqNum: NoSeqNum}
	if _, err := loc.parse(row); err != nil {
		return loc, false
	}
	loc.Region = region
	return loc, true
}

// parse reads the columns, and says whether the region's own is among them.
func (loc *Location) parse(row []cells.Cell) (ok bool, err error) {
	var address string
	var assigned []byte
	var code uint64
	var replicas replicaColumns
	for i := range row {
		c := &row[i]
		if string(c.Family) != FamilyInfo {
			continue
		}
		switch string(c.Qualifier) {
		case QualifierRegionInfo:
			loc.Region, err = UnmarshalRegion(c.Value)
			if err != nil {
				return false, fmt.Errorf("meta row %s: %w", cells.QuoteShort(c.Row, 200), err)
			}
			ok = true
		case QualifierServer:
			address = string(c.Value)
		case QualifierStartCode:
			code, _ = Uint64(c.Value)
		case QualifierSeqNum:
			if n, good := Uint64(c.Value); good {
				loc.SeqNum = int64(n)
			}
		case QualifierState:
			loc.State = string(c.Value)
		case QualifierServerName:
			assigned = c.Value
		default:
			if len(c.Qualifier) > 5 && c.Qualifier[len(c.Qualifier)-5] == '_' {
				replicas.add(c)
			}
		}
	}
	loc.Replicas = replicas.locations()
	if loc.State == "OPENING" {
		loc.Opener, _ = ParseServerName(string(assigned)) // one that cannot be read is as good as none
	}
	if address != "" && code != 0 {
		host, port, err := ParseAddress(address)
		if err != nil {
			return false, err
		}
		loc.Server = ServerName{host, port, code}
	}
	return ok, nil
}

// replicaColumns gathers the columns of a row's secondary replicas.
type replicaColumns []replicaColumn

type replicaColumn struct {
	ReplicaLocation
	address string
	code    uint64
}

// add reads a column with a replica's suffix; others are left alone.
func (l *replicaColumns) add(c *cells.Cell) {
	n := len(c.Qualifier) - 5
	var id int32
	for _, d := range c.Qualifier[n+1:] {
		switch {
		case '0' <= d && d <= '9':
			id = id<<4 | int32(d-'0')
		case 'A' <= d && d <= 'F':
			id = id<<4 | int32(d-'A'+10)
		default:
			return
		}
	}
	if id == 0 {
		return
	}
	switch string(c.Qualifier[:n]) {
	case QualifierServer:
		if r := l.of(id); r != nil {
			r.address = string(c.Value)
		}
	case QualifierStartCode:
		if r := l.of(id); r != nil {
			r.code, _ = Uint64(c.Value)
		}
	case QualifierSeqNum:
		if v, good := Uint64(c.Value); good {
			if r := l.of(id); r != nil {
				r.SeqNum = int64(v)
			}
		}
	case QualifierState:
		if r := l.of(id); r != nil {
			r.State = string(c.Value)
		}
	}
}

// of gives the replica's entry, nil if there are too many.
func (l *replicaColumns) of(id int32) *replicaColumn {
	for i := range *l {
		if (*l)[i].ID == id {
			return &(*l)[i]
		}
	}
	if len(*l) >= maxReplicas {
		return nil
	}
	*l = append(*l, replicaColumn{ReplicaLocation: ReplicaLocation{ID: id, SeqNum: NoSeqNum}})
	return &(*l)[len(*l)-1]
}

// locations gives the replicas in order. An address that cannot be read leaves
// the replica without a server.
func (l replicaColumns) locations() []ReplicaLocation {
	if len(l) == 0 {
		return nil
	}
	out := make([]ReplicaLocation, len(l))
	for i := range l {
		out[i] = l[i].ReplicaLocation
		if l[i].address == "" || l[i].code == 0 {
			continue
		}
		if host, port, err := ParseAddress(l[i].address); err == nil {
			out[i].Server = ServerName{host, port, l[i].code}
		}
	}
	slices.SortFunc(out, func(a, b ReplicaLocation) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// SearchRow is the meta row at which a reversed scan for the region of row
// begins: HBase's createRegionName(table, row, "99999999999999").
func SearchRow(table TableName, row []byte) []byte {
	return searchRow(table, row, "99999999999999")
}

// SearchRowBefore is the meta row at which a reversed scan for the region
// *before* row begins: the region whose start key is strictly smaller. An
// empty row means the table's last region.
func SearchRowBefore(table TableName, row []byte) []byte {
	if len(row) == 0 {
		return append([]byte(table.String()), 0)
	}
	return searchRow(table, row, "00000000000000")
}

// FirstRow precedes every region row of the table and follows its state row.
func FirstRow(table TableName) []byte { return searchRow(table, nil, "") }

// StopRow follows every region row of the table under CompareRows: the table
// name, a space (below every legal name byte) and two commas.
func StopRow(table TableName) []byte {
	return []byte(table.String() + " ,,")
}

func searchRow(table TableName, row []byte, id string) []byte {
	t := table.String()
	b := make([]byte, 0, len(t)+len(row)+len(id)+2)
	b = append(b, t...)
	b = append(b, ',')
	b = append(b, row...)
	b = append(b, ',')
	return append(b, id...)
}

// quoteName prints a region name; names are mostly printable.
func quoteName(b []byte) string {
	if bytes.IndexFunc(b, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return string(b)
	}
	return strings.Clone(cells.Quote(b))
}

package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
)

func newHFile() *cobra.Command {
	var (
		output           string
		pairs, meta, sum bool
		row              string
	)
	cmd := &cobra.Command{
		Use:   "hfile FILE",
		Short: "print an HFile: its cells, metadata, statistics",
		Long: `Prints an HFile (version 3), as HBase's "hbase hfile" does. Without a flag:
metadata. -p and --stats read the whole file and with it check every checksum,
the order of the keys and the number of cells.`,
		Example: `  holdfast hfile data/default/t/1a2b.../f/0c9d...
  holdfast hfile -p FILE
  holdfast hfile --row user-17 FILE
  holdfast hfile --print-meta --stats FILE -o json`,
		Args: argsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !pairs && !sum && row == "" {
				meta = true
			}
			r, err := hfile.Open(args[0])
			if err != nil {
				return err
			}
			out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
			p := hfilePrinter{r: r, out: out, pairs: pairs || row != "", meta: meta, stats: sum}
			if row != "" {
				if p.row, err = rowArgument(row); err != nil {
					return errors.Join(err, r.Close())
				}
			}
			if output == "json" {
				err = p.json()
			} else {
				err = p.text()
			}
			return errors.Join(err, out.Flush(), r.Close())
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&pairs, "print", "p", false, "print the cells")
	f.BoolVarP(&meta, "print-meta", "m", false, "print trailer, file info and bloom filter")
	f.BoolVarP(&sum, "stats", "s", false, "print statistics of the cells")
	f.StringVarP(&row, "row", "w", "", `only the cells of this row (\xHH for a byte)`)
	outputFlag(cmd, &output)
	return cmd
}

type hfilePrinter struct {
	r                  *hfile.Reader
	out                io.Writer
	pairs, meta, stats bool
	row                []byte
}

// hfileStats is what --stats counts.
type hfileStats struct {
	Cells        int64            `json:"cells"`
	Rows         int64            `json:"rows"`
	Types        map[string]int64 `json:"types"`
	KeyBytes     sizes            `json:"keyBytes"`
	ValueBytes   sizes            `json:"valueBytes"`
	RowBytes     sizes            `json:"rowBytes"`
	CellsPerRow  sizes            `json:"cellsPerRow"`
	TaggedCells  int64            `json:"taggedCells"`
	MinTimestamp int64            `json:"minTimestamp"`
	MaxTimestamp int64            `json:"maxTimestamp"`
	BiggestRow   string           `json:"biggestRow"`

	row      []byte
	rowCells int64
	rowBytes int64
}

// sizes are the bounds and the mean of lengths.
type sizes struct {
	Min  int64   `json:"min"`
	Max  int64   `json:"max"`
	Mean float64 `json:"mean"`

	n, sum int64
}

func (s *sizes) add(v int64) {
	if s.n == 0 || v < s.Min {
		s.Min = v
	}
	s.Max = max(s.Max, v)
	s.n++
	s.sum += v
	s.Mean = float64(s.sum) / float64(s.n)
}

func (s *hfileStats) add(c *cells.Cell) {
	if s.Cells == 0 || string(c.Row) != string(s.row) {
		s.endRow()
		s.row, s.rowCells, s.rowBytes = append(s.row[:0], c.Row...), 0, 0
		s.Rows++
	}
	if s.Cells == 0 {
		s.MinTimestamp, s.MaxTimestamp = c.Timestamp, c.Timestamp
	}
	s.Cells++
	s.rowCells++
	s.rowBytes += int64(c.HeapSize())
	s.Types[c.Type.String()]++
	s.KeyBytes.add(int64(12 + len(c.Row) + len(c.Family) + len(c.Qualifier)))
	s.ValueBytes.add(int64(len(c.Value)))
	if len(c.Tags) > 0 {
		s.TaggedCells++
	}
	s.MinTimestamp, s.MaxTimestamp = min(s.MinTimestamp, c.Timestamp), max(s.MaxTimestamp, c.Timestamp)
}

func (s *hfileStats) endRow() {
	if s.Rows == 0 {
		return
	}
	if s.rowBytes > s.RowBytes.Max {
		s.BiggestRow = cells.Quote(s.row)
	}
	s.RowBytes.add(s.rowBytes)
	s.CellsPerRow.add(s.rowCells)
}

// each goes over the cells asked for; stats, if wanted, are of all of them.
func (p *hfilePrinter) each(use func(*cells.Cell) error) (*hfileStats, error) {
	st := &hfileStats{Types: map[string]int64{}}
	if !p.pairs && !p.stats {
		return nil, nil
	}
	s := p.r.Scan()
	if p.row != nil {
		var err error
		if s, err = p.r.Seek(p.row); err != nil {
			return nil, err
		}
	}
	for s.Next() {
		c := s.Cell()
		if p.row != nil && string(c.Row) != string(p.row) {
			break
		}
		st.add(c)
		if p.pairs {
			if err := use(c); err != nil {
				return nil, err
			}
		}
	}
	st.endRow()
	if !p.stats {
		st = nil
	}
	return st, s.Err()
}

func (p *hfilePrinter) text() error {
	st, err := p.each(func(c *cells.Cell) error {
		_, err := fmt.Fprintf(p.out, "K: %v/seqid=%d V: %s%s\n", c, c.Seq, cells.Quote(c.Value), tagText(c.Tags))
		return err
	})
	if err != nil {
		return err
	}
	if p.meta {
		p.metaText()
	}
	if st != nil {
		st.print(p.out)
	}
	return nil
}

func tagText(tags []byte) string {
	text := ""
	for len(tags) > 0 {
		typ, value, rest, ok := cells.NextTag(tags)
		if !ok {
			return text + " T: (malformed)"
		}
		text += fmt.Sprintf(" T[%d]: %s", typ, cells.Quote(value))
		tags = rest
	}
	return text
}

func (s *hfileStats) print(w io.Writer) {
	line := func(what string, z *sizes) {
		fmt.Fprintf(w, "  %-16s min %d  max %d  mean %.1f\n", what, z.Min, z.Max, z.Mean)
	}
	fmt.Fprintf(w, "Stats:\n  %d cells in %d rows, %d with tags\n", s.Cells, s.Rows, s.TaggedCells)
	for _, typ := range slices.Sorted(maps.Keys(s.Types)) {
		fmt.Fprintf(w, "  %-16s %d\n", typ, s.Types[typ])
	}
	line("key bytes", &s.KeyBytes)
	line("value bytes", &s.ValueBytes)
	line("row bytes", &s.RowBytes)
	line("cells of a row", &s.CellsPerRow)
	if s.Cells > 0 {
		fmt.Fprintf(w, "  timestamps       %d to %d\n  biggest row      %s\n", s.MinTimestamp, s.MaxTimestamp, s.BiggestRow)
	}
}

func (p *hfilePrinter) metaText() {
	t := p.r.Trailer()
	fmt.Fprintf(p.out, "File: %s (%d bytes)\nTrailer:\n", p.r.Name(), p.r.Size())
	for _, l := range []struct {
		what  string
		value any
	}{
		{"majorVersion", t.Major}, {"minorVersion", t.Minor}, {"entryCount", t.Cells},
		{"compressionCodec", t.Compression}, {"numDataIndexLevels", t.IndexLevels}, {"dataIndexCount", t.IndexEntries},
		{"metaIndexCount", t.MetaEntries}, {"totalUncompressedBytes", t.UnpackedBytes}, {"uncompressedDataIndexSize", t.IndexBytes},
		{"firstDataBlockOffset", t.FirstDataOffset}, {"lastDataBlockOffset", t.LastDataOffset},
		{"loadOnOpenOffset", t.LoadOnOpenOffset}, {"fileInfoOffset", t.FileInfoOffset}, {"comparator", t.Comparator},
	} {
		fmt.Fprintf(p.out, "  %-26s %v\n", l.what, l.value)
	}
	fmt.Fprintln(p.out, "Fileinfo:")
	for _, k := range slices.Sorted(maps.Keys(p.r.Info())) {
		fmt.Fprintf(p.out, "  %-26s %s\n", k, infoText(k, p.r.Info()[k]))
	}
	bloom := func(what string, b *hfile.Bloom) {
		if b == nil {
			fmt.Fprintf(p.out, "%s: none\n", what)
			return
		}
		fmt.Fprintf(p.out, "%s: %s %d keys of %d, %d bytes, %d hashes\n", what, b.Type, b.Keys, b.MaxKeys, b.Bytes, b.Hashes)
	}
	bloom("Bloom filter", p.r.Bloom())
	bloom("Delete family bloom filter", p.r.DeleteBloom())
}

// infoText reads a value of the file info by what its key is known to hold.
func infoText(key string, v []byte) string {
	switch {
	case (key == hfile.InfoLastKey) && len(v) > 0:
		return cells.Quote(v)
	case key == hfile.InfoCreateTime && len(v) == 8:
		ms := int64(binary.BigEndian.Uint64(v))
		return fmt.Sprintf("%d (%s)", ms, time.UnixMilli(ms).UTC().Format(time.RFC3339))
	case slices.Contains([]string{hfile.InfoTagsPacked, hfile.InfoMajor}, key) && len(v) == 1:
		return fmt.Sprint(v[0] != 0)
	case slices.Contains([]string{hfile.InfoAvgKeyLen, hfile.InfoAvgValueLen, hfile.InfoMaxTagsLen, hfile.InfoKeyValueVer}, key) && len(v) == 4:
		return fmt.Sprint(int32(binary.BigEndian.Uint32(v)))
	case slices.Contains([]string{hfile.InfoMaxSeq, hfile.InfoMaxSeqID, hfile.InfoEarliestPut, hfile.InfoDeleteCount, hfile.InfoBulkTime}, key) && len(v) == 8:
		return fmt.Sprint(int64(binary.BigEndian.Uint64(v)))
	}
	return cells.Quote(v)
}

// json prints one object; cells are in an array that is written as it is read.
func (p *hfilePrinter) json() error {
	type part struct {
		name  string
		value any
	}
	var parts []part
	if p.meta {
		info := map[string]string{}
		for k, v := range p.r.Info() {
			info[k] = infoText(k, v)
		}
		t := p.r.Trailer()
		parts = append(parts, part{"file", p.r.Name()}, part{"bytes", p.r.Size()}, part{"version", fmt.Sprintf("%d.%d", t.Major, t.Minor)},
			part{"compression", t.Compression.String()}, part{"cellsPromised", t.Cells}, part{"trailer", t}, part{"fileInfo", info})
		if b := p.r.Bloom(); b != nil {
			parts = append(parts, part{"bloom", b})
		}
	}
	if _, err := io.WriteString(p.out, "{"); err != nil {
		return err
	}
	sep := ""
	put := func(name string, value any) error {
		b, err := json.Marshal(value)
		if err == nil {
			_, err = fmt.Fprintf(p.out, "%s\n  %q: %s", sep, name, b)
		}
		sep = ","
		return err
	}
	for _, x := range parts {
		if err := put(x.name, x.value); err != nil {
			return err
		}
	}
	if p.pairs {
		if _, err := fmt.Fprintf(p.out, "%s\n  \"cells\": [", sep); err != nil {
			return err
		}
		sep = ""
	}
	st, err := p.each(func(c *cells.Cell) error {
		b, err := json.Marshal(struct {
			Row       string `json:"row"`
			Family    string `json:"family"`
			Qualifier string `json:"qualifier"`
			Timestamp int64  `json:"timestamp"`
			Type      string `json:"type"`
			Value     string `json:"value"`
			Tags      string `json:"tagsHex,omitempty"`
			Seq       uint64 `json:"seq"`
		}{cells.Quote(c.Row), cells.Quote(c.Family), cells.Quote(c.Qualifier), c.Timestamp, c.Type.String(), cells.Quote(c.Value), hex.EncodeToString(c.Tags), c.Seq})
		if err == nil {
			_, err = fmt.Fprintf(p.out, "%s\n    %s", sep, b)
		}
		sep = ","
		return err
	})
	if err != nil {
		return err
	}
	if p.pairs {
		if _, err := io.WriteString(p.out, "\n  ]"); err != nil {
			return err
		}
		sep = ","
	}
	if st != nil {
		if err := put("stats", st); err != nil {
			return err
		}
	}
	_, err = io.WriteString(p.out, "\n}\n")
	return err
}

package readers

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Source is an opened input: decompressed, in UTF-8, with its beginning known.
type Source struct {
	io.Reader
	// Head is the first bytes, at most 64 KiB, still to be read from Reader too.
	Head []byte
	// Binary says that it is not text.
	Binary bool
	// Packing is "gzip", "zstd", "bzip2" or "".
	Packing string
	close   func()
}

// Close frees what Open took.
func (s *Source) Close() {
	if s.close != nil {
		s.close()
	}
}

const headSize = 64 << 10

// Open wraps r; it recognises gzip, zstd, bzip2 and UTF-16 by their first
// bytes. Memory for decompression is bounded.
func Open(r io.Reader) (*Source, error) {
	src := &Source{}
	br := bufio.NewReaderSize(r, headSize)
	magic, err := br.Peek(4)
	if err != nil && len(magic) == 0 {
		if err == io.EOF {
			src.Reader = br
			return src, nil
		}
		return nil, err
	}
	var inner io.Reader = br
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		zr, err := gzip.NewReader(br)
		if err != nil {
			return nil, err
		}
		src.Packing, inner = "gzip", zr
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		zr, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		src.Packing, inner, src.close = "zstd", zr, zr.Close
	case bytes.HasPrefix(magic, []byte("BZh")):
		src.Packing, inner = "bzip2", bzip2.NewReader(br)
	}
	if src.Packing != "" {
		br = bufio.NewReaderSize(inner, headSize)
	}
	if bom, _ := br.Peek(2); len(bom) == 2 && (bom[0] == 0xff && bom[1] == 0xfe || bom[0] == 0xfe && bom[1] == 0xff) {
		br = bufio.NewReaderSize(&utf16Reader{r: br, big: bom[0] == 0xfe}, headSize)
	}
	// What is there of a damaged stream is still worth reading; the error comes again.
	src.Head, _ = br.Peek(headSize)
	src.Binary = bytes.IndexByte(src.Head[:min(len(src.Head), 8192)], 0) >= 0
	src.Reader = br
	return src, nil
}

// utf16Reader turns UTF-16 into UTF-8; what is broken becomes U+FFFD.
type utf16Reader struct {
	r    *bufio.Reader
	big  bool
	high rune
	out  []byte
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		a, err := u.r.ReadByte()
		if err != nil {
			return 0, err
		}
		b, err := u.r.ReadByte()
		if err != nil {
			return 0, err
		}
		c := rune(b)<<8 | rune(a)
		if u.big {
			c = rune(a)<<8 | rune(b)
		}
		switch {
		case c == 0xfeff:
		case u.high != 0:
			u.out = utf8.AppendRune(u.out, utf16.DecodeRune(u.high, c))
			u.high = 0
		case utf16.IsSurrogate(c):
			u.high = c
		default:
			u.out = utf8.AppendRune(u.out, c)
		}
	}
	n := copy(p, u.out)
	u.out = append(u.out[:0], u.out[n:]...)
	return n, nil
}

// Expand turns arguments into file names: directories become the regular files
// below them, in order, hidden ones left out. Symbolic links to directories are
// not followed.
func Expand(args []string) ([]string, error) {
	var files []string
	for _, a := range args {
		if a == "-" {
			files = append(files, a)
			continue
		}
		info, err := os.Stat(a)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, a)
			continue
		}
		err = filepath.WalkDir(a, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // an unreadable part does not hide the rest
			}
			if name := d.Name(); len(name) > 1 && name[0] == '.' && path != a {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if d.Type().IsRegular() {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

package wire

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

// FuzzFields walks whatever comes, and finds what the general decoder finds.
func FuzzFields(f *testing.F) {
	spoil.Add(f, []byte{8, 1, 0x12, 2, 'a', 'b', 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x12, 0})
	spoil.Add(f, []byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f})
	spoil.Add(f, []byte{0x0b, 0x08, 1, 0x0c, 8, 2})
	spoil.Add(f, []byte{0x0b})
	f.Fuzz(func(t *testing.T, in []byte) {
		rest := in
		fields, damaged := 0, false
		for walk := Fields("test", in); walk.Next(); {
			if damaged {
				t.Fatalf("%x: a field behind the damage: %+v", in, walk)
			}
			var format *FormatError
			if walk.Err != nil {
				if damaged = true; !errors.As(walk.Err, &format) || walk.Num != 0 {
					t.Fatalf("%x: field %d with %v", in, walk.Num, walk.Err)
				}
				continue
			}
			fields++
			// The same, step by step.
			for {
				num, typ, n := protowire.ConsumeTag(rest)
				m := protowire.ConsumeFieldValue(num, typ, rest[max(n, 0):])
				if n < 0 || m < 0 {
					t.Fatalf("%x: field %d was found behind the end of what can be read", in, walk.Num)
				}
				value := rest[n : n+m]
				rest = rest[n+m:]
				if typ != protowire.VarintType && typ != protowire.BytesType {
					continue
				}
				if num != walk.Num || (walk.Bytes != nil) != (typ == protowire.BytesType) {
					t.Fatalf("%x: field %d of type %d is told as %+v", in, num, typ, walk)
				}
				if typ == protowire.VarintType {
					if v, _ := protowire.ConsumeVarint(value); v != walk.V {
						t.Fatalf("%x: field %d is %d, told as %d", in, num, v, walk.V)
					}
				} else if b, _ := protowire.ConsumeBytes(value); !bytes.Equal(b, walk.Bytes) {
					t.Fatalf("%x: field %d is %x, told as %x", in, num, b, walk.Bytes)
				}
				break
			}
		}
		if n := protowireFields(in); !damaged && n != fields {
			t.Fatalf("%x: %d fields, want %d", in, fields, n)
		}
	})
}

// protowireFields counts the varints and counted fields of a message; -1 if it
// is damaged.
func protowireFields(b []byte) int {
	count := 0
	for len(b) > 0 {
		_, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return -1
		}
		if typ == protowire.VarintType || typ == protowire.BytesType {
			count++
		}
		b = b[n:]
	}
	return count
}

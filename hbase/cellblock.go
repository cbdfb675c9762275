package hbase

import "github.com/holdfast-hbase/holdfast/internal/wire"

// codec is the form of the cell blocks a session sends and hands out.
const codec = wire.KeyValueCodec

// blockSize is the room the cells take in a block.
func blockSize(cs []Cell) int {
	n := 0
	for i := range cs {
		n += codec.CellSize(&cs[i])
	}
	return n
}

// decodeCells takes the n cells a block is said to hold, into room if they fit
// there; they alias the block.
func decodeCells(block []byte, n int, room []Cell) ([]Cell, error) {
	r := codec.Reader(block)
	return r.Take(n, room)
}

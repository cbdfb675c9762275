package chaos

import "encoding/binary"

// Damage spoils a cell block (as the codec writes it, before it is compressed)
// in a way that a reader who checks what it reads must notice: a block has no
// checksum, so nobody could notice another value in a cell. turn counts from 1
// and chooses the way:
//
//  1. the first cell claims to be longer than the block
//  2. the last byte is missing
//  3. the first cell's key claims to be longer than the cell
//  4. the first cell's row claims to be longer than its key
//  5. three bytes follow the last cell
//  6. the last cell is missing
//
// and then from 1 again. The block may be changed; an empty one stays empty.
func Damage(block []byte, turn uint64) []byte {
	// A cell: its length, then key length and value length, the key (row length
	// in two bytes, row, ...), the value.
	const keyLength, rowLength, smallest = 4, 12, 14
	if len(block) < smallest {
		return block
	}
	switch (turn - 1) % 6 {
	case 0:
		binary.BigEndian.PutUint32(block, uint32(len(block)))
	case 1:
		block = block[:len(block)-1]
	case 2:
		binary.BigEndian.PutUint32(block[keyLength:], uint32(len(block)))
	case 3:
		binary.BigEndian.PutUint16(block[rowLength:], 0xffff)
	case 4:
		block = append(block, 0, 0, 1)
	case 5:
		block = block[:lastCell(block)]
	}
	return block
}

// lastCell is where the last cell of a block begins.
func lastCell(block []byte) int {
	at, last := 0, 0
	for len(block)-at >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(block[at:]))
		last = at
		if n > len(block)-at {
			break
		}
		at += n
	}
	return last
}

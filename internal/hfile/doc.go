// Package hfile reads and writes HFiles, version 3: the files in which HBase
// keeps the cells of one family of one region, and which bulk load takes in.
//
// A file is a run of blocks and a trailer of 4,096 bytes at its end:
//
//	data blocks, between them leaf index and bloom chunks as they fill up
//	meta blocks
//	intermediate index blocks
//	root index, meta index, file info, bloom metadata (read when opened)
//	trailer
//
// Each block has a header of 33 bytes (type, sizes, offset of the previous
// block of its type, checksum parameters), is compressed as a whole after the
// header, and ends with a checksum for every so many bytes.
//
// A [Reader] is opened with [Open] or [NewReader]. Its [Scanner] reads every
// data block in order, checks checksums, the order of the keys and in the end
// the number of cells the trailer promises, so that a scan that ends without
// error has seen the file as it was written. [Reader.Seek] finds a row through
// the index.
//
// Understood: the encodings NONE, PREFIX, DIFF, FAST_DIFF and ROW_INDEX_V1
// (with compressed tags), the compressions NONE, GZ, SNAPPY, LZ4 and ZSTD (both
// as a plain frame and in Hadoop's blocks), checksums NULL, CRC32 and CRC32C,
// tags and sequence numbers. Anything else, encryption too, is an
// [UnsupportedError]; a file that contradicts itself is a [CorruptError] with
// the offset of the block. Lengths are checked before memory is taken.
//
// A Reader may be shared by goroutines; Scanners and Writers may not.
package hfile

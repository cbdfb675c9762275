// Package pb holds the protobuf messages of HBase's RPC services, filters,
// comparators and znodes, generated from the .proto files in proto/.
//
// The files are our own descriptions of the wire format: field numbers, types
// and labels of HBase 1.0 to 4.0 in the newest form, so that a peer of any of
// those versions understands us and we it. Fields of other versions are
// skipped when read; a missing required field is an error when written and
// when read, as it is for Java peers.
//
// Every message has, besides the methods of google.golang.org/protobuf, the
// faster MarshalVT, MarshalToSizedBufferVT, UnmarshalVT and SizeVT; those are
// the ones the rest of the module uses. Unknown fields survive an
// UnmarshalVT/MarshalVT round trip. UnmarshalVT copies, so the message does
// not hold on to the buffer it was read from.
//
// Messages are plain data: safe to read from several goroutines, not to write.
package pb

//go:generate go run ../tools/genpb -root ../.. -proto internal/pb/proto

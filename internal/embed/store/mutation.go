package store

import (
	"math"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Kind is the kind of a mutation.
type Kind uint8

// The four kinds, with HBase's codes on the wire.
const (
	Append    Kind = 0
	Increment Kind = 1
	Put       Kind = 2
	Delete    Kind = 3
)

// NoTTL is the TTL of a mutation without one.
const NoTTL int64 = math.MaxInt64

// Op is one mutation of a row.
type Op struct {
	Kind Kind
	// Cells in the order written. Row is not looked at; Timestamp
	// cells.LatestTimestamp means the server's clock (in a Delete of one
	// version: the newest version there is). Types count for Put and Delete.
	// An Increment's values are 8-byte big-endian amounts.
	Cells []cells.Cell
	// Timestamp of a Delete without cells, which deletes every family.
	// cells.LatestTimestamp means the clock; a zero is the timestamp 0.
	Timestamp int64
	// TTL of the cells written in ms; NoTTL (or 0) for none.
	TTL int64
	// Range narrows what an Increment or Append counts as present; the zero
	// value means all time.
	Range cells.TimeRange
	// NoResult drops an Increment's or Append's answer.
	NoResult bool
	// Durability: the strongest of a mutation's ops counts.
	Durability cells.Durability
	// NonceGroup and Nonce make an Increment or Append recognisable when a
	// client sends it again within ten minutes; Nonce 0 is none.
	NonceGroup, Nonce uint64
}

// CompareOp is the operator of a condition, with HBase's codes on the wire.
type CompareOp uint8

// The operators read "expected op stored".
const (
	Less           CompareOp = 0
	LessOrEqual    CompareOp = 1
	Equal          CompareOp = 2
	NotEqual       CompareOp = 3
	GreaterOrEqual CompareOp = 4
	Greater        CompareOp = 5
	NoOp           CompareOp = 6
)

// Condition is what must hold for a mutation to happen.
type Condition struct {
	// Row that is tested; nil means the mutation's.
	Row []byte
	// Filter, if set, is all that counts: the condition holds if a Get with it
	// finds a cell. Family and Qualifier, if set, narrow that Get.
	Filter            cells.Filter
	Family, Qualifier []byte
	Op                CompareOp
	// Value expected; empty means "absent or empty".
	Value []byte
	// Range of timestamps considered; the zero value means all time.
	Range cells.TimeRange
}

// RowMutation is one row's mutations, applied together or not at all.
type RowMutation struct {
	Row []byte
	Ops []Op
	// Condition or nil.
	Condition *Condition
	// Memstore is told what of the mutation a kill of the region's server would
	// lose; nil for nobody. Mutations applied together name the same one.
	Memstore *Memstore
}

// MutateResult is the outcome of a RowMutation.
type MutateResult struct {
	// Processed is false only if a condition did not hold.
	Processed bool
	// Cells answers an Increment or Append (of several in one RowMutation, all
	// in their order). Nil for puts and deletes.
	Cells []cells.Cell
}

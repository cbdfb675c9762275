package hbase

// CheckAndMutate changes a row if a condition on the same row holds, in one
// atomic step. Set exactly one condition and one action:
//
//	hbase.NewCheckAndMutate("r").IfEquals("f", "state", []byte("open")).Then(put)
//
// It has no nonce in HBase: if an answer is lost after the request was sent,
// the call returns [ErrUnknownOutcome] instead of trying again.
type CheckAndMutate struct {
	Row []byte
	// Family and Qualifier name the tested column.
	Family, Qualifier []byte
	// Op and Value: the condition holds if "Value Op stored", HBase's own
	// order: Less means Value < stored. An absent column satisfies no
	// non-empty Value, NotEqual included. An empty Value means "absent or
	// empty" for every Op except NotEqual, which then means "present".
	Op    CompareOp
	Value []byte
	// Filter, if set, replaces the column test: the condition holds if the row
	// read through the filter has a cell (HBase 2.3+).
	Filter Filter
	// TimeRange restricts the tested versions. Default: all (HBase 2.0+).
	TimeRange TimeRange
	// QueryMetrics asks for [Result.BlockBytesScanned] of the condition's read.
	// HBase 2.6.2 and later.
	QueryMetrics bool
	// Action is done if the condition holds.
	Action RowAction

	conditions int
}

// CheckResult is the outcome of a [CheckAndMutate].
type CheckResult struct {
	// Applied says whether the condition held and the action was done.
	Applied bool
	// Result holds the new values of Increments and Appends; otherwise empty.
	Result *Result
}

// NewCheckAndMutate starts one for the row.
func NewCheckAndMutate[B Bytes](row B) *CheckAndMutate { return &CheckAndMutate{Row: []byte(row)} }

// IfEquals holds if the column's newest version equals value.
func (c *CheckAndMutate) IfEquals(family, qualifier string, value []byte) *CheckAndMutate {
	return c.If(family, qualifier, Equal, value)
}

// IfNotExists holds if the column is absent (or stored with an empty value).
func (c *CheckAndMutate) IfNotExists(family, qualifier string) *CheckAndMutate {
	return c.If(family, qualifier, Equal, nil)
}

// If holds if "value op stored" does: HBase's own order, see the fields.
func (c *CheckAndMutate) If(family, qualifier string, op CompareOp, value []byte) *CheckAndMutate {
	c.Family, c.Qualifier, c.Op, c.Value = []byte(family), []byte(qualifier), op, value
	c.conditions++
	return c
}

// IfFilter holds if the row read through the filter has a cell.
func (c *CheckAndMutate) IfFilter(f Filter) *CheckAndMutate {
	c.Filter = f
	c.conditions++
	return c
}

// In restricts the tested versions.
func (c *CheckAndMutate) In(r TimeRange) *CheckAndMutate { c.TimeRange = r; return c }

// Then sets the action.
func (c *CheckAndMutate) Then(a RowAction) *CheckAndMutate { c.Action = a; return c }

// RowKey is the row.
func (c *CheckAndMutate) RowKey() []byte { return c.Row }

func (*CheckAndMutate) isOp() {}

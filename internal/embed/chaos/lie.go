package chaos

// Region is what a lie in hbase:meta is chosen by. An empty End is the table's
// end.
type Region struct {
	Table, Encoded string
	Start, End     []byte
}

// Lying says whether there is any lie about hbase:meta.
func (e *Engine) Lying() bool { return e != nil && e.lying.Load() }

// Lie finds the first rule that lies about a region, and counts it as applied;
// with only, the first one of that action. picture is what AddWith was given. It
// gives false if the truth is told.
func (e *Engine) Lie(r Region, only Action) (rule Rule, picture any, ok bool) {
	if !e.Lying() {
		return Rule{}, nil, false
	}
	c := Call{Table: r.Table, Region: r.Encoded, Rows: [][]byte{r.Start, r.End}, Range: true}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.rules {
		if s.Action.Lie() && (only == "" || only == s.Action) && s.pick(&c) {
			return s.Rule, s.picture, true
		}
	}
	return Rule{}, nil, false
}

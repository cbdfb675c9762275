package eventlog

import "testing"

func TestVisit(t *testing.T) {
	l := New(Options{Capacity: 4})
	for range 10 {
		l.Record(call("Get", "t", OK))
	}
	var seen []uint64
	see := func(e *Event) { seen = append(seen, e.Seq) }
	next, lost := l.Visit(0, 3, see)
	if next != 9 || lost != 6 || len(seen) != 3 || seen[0] != 7 {
		t.Errorf("next %d, %d lost, saw %v", next, lost, seen)
	}
	if next, lost = l.Visit(next, 3, see); next != 10 || lost != 0 || len(seen) != 4 || seen[3] != 10 {
		t.Errorf("next %d, %d lost, saw %v", next, lost, seen)
	}
	if next, lost = l.Visit(next, 0, see); next != 10 || lost != 0 || len(seen) != 4 {
		t.Errorf("nothing new: next %d, %d lost, saw %v", next, lost, seen)
	}
	// Numbers from before a restart are larger than any there is.
	if next, lost = l.Visit(99, 0, see); next != 99 || lost != 0 || len(seen) != 4 {
		t.Errorf("from the future: next %d, %d lost, saw %v", next, lost, seen)
	}
	var none *Log
	if next, lost = none.Visit(7, 0, see); next != 7 || lost != 0 {
		t.Errorf("a nil log: %d, %d", next, lost)
	}
}

func TestNewest(t *testing.T) {
	l := New(Options{Capacity: 8})
	if got, older, last := l.Newest(Filter{}, 0, 5); got != nil || older != 0 || last != 0 {
		t.Errorf("an empty log: %v, %d older, last %d", got, older, last)
	}
	for i := range 20 {
		method := "Get"
		if i%2 == 1 {
			method = "Scan"
		}
		e := call(method, "t", OK)
		e.Row = []byte{byte('a' + i)}
		l.Record(e)
	}
	got, older, last := l.Newest(Filter{Method: "Scan"}, 0, 3)
	if len(got) != 3 || older != 1 || last != 20 || got[0].Seq != 16 || got[2].Seq != 20 || string(got[2].Row) != "t" {
		t.Errorf("%v, %d older, last %d", got, older, last)
	}
	if got, older, _ = l.Newest(Filter{}, 18, 3); len(got) != 2 || older != 0 || got[0].Seq != 19 {
		t.Errorf("since 18: %v, %d older", got, older)
	}
	if got, older, _ = l.Newest(Filter{}, 99, 3); len(got) != 0 || older != 0 {
		t.Errorf("from the future: %v, %d older", got, older)
	}
	var none *Log
	if got, _, last = none.Newest(Filter{}, 0, 1); got != nil || last != 0 {
		t.Errorf("a nil log: %v, %d", got, last)
	}
}

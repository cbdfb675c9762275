package hfile

// tagDict is the dictionary by which tags are packed within a block: the 127
// last used, by number; the one least recently used gives its number away
// (LRUDictionary as TagCompressionContext makes it).
type tagDict struct {
	entries    []tagEntry
	byText     map[string]int
	head, tail int // most and least recently used; -1 if empty
}

type tagEntry struct {
	text       string
	prev, next int
}

const (
	tagDictSize = 127
	notInDict   = 0xff
)

func newTagDict() *tagDict {
	return &tagDict{byText: make(map[string]int), head: -1, tail: -1}
}

func (d *tagDict) reset() {
	d.entries = d.entries[:0]
	clear(d.byText)
	d.head, d.tail = -1, -1
}

func (d *tagDict) unlink(i int) {
	e := &d.entries[i]
	if e.prev >= 0 {
		d.entries[e.prev].next = e.next
	} else {
		d.head = e.next
	}
	if e.next >= 0 {
		d.entries[e.next].prev = e.prev
	} else {
		d.tail = e.prev
	}
}

func (d *tagDict) front(i int) {
	e := &d.entries[i]
	e.prev, e.next = -1, d.head
	if d.head >= 0 {
		d.entries[d.head].prev = i
	}
	d.head = i
	if d.tail < 0 {
		d.tail = i
	}
}

func (d *tagDict) add(tag []byte) {
	i := len(d.entries)
	if i < tagDictSize {
		d.entries = append(d.entries, tagEntry{})
	} else {
		i = d.tail
		delete(d.byText, d.entries[i].text)
		d.unlink(i)
	}
	text := string(tag)
	d.entries[i].text = text
	d.byText[text] = i
	d.front(i)
}

func (d *tagDict) get(i int) (string, bool) {
	if i < 0 || i >= len(d.entries) {
		return "", false
	}
	d.unlink(i)
	d.front(i)
	return d.entries[i].text, true
}

// find gives the number of a tag; one that is new gets one for the next time.
func (d *tagDict) find(tag []byte) (int, bool) {
	if i, ok := d.byText[string(tag)]; ok {
		d.unlink(i)
		d.front(i)
		return i, true
	}
	d.add(tag)
	return 0, false
}

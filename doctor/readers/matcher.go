package readers

import (
	"errors"
	"fmt"
)

// Matcher finds any of a set of words in text, ignoring ASCII blanks, line
// ends and letter case. It is an automaton in one table: one lookup a byte
// whatever the number of words. Safe for concurrent use once built.
type Matcher struct {
	class [256]uint8
	next  []uint16 // state<<classBits | class -> state, with hitBit if words end there
	outs  [][]int  // words that end in a state
	words int
}

const (
	classBits = 6
	hitBit    = 0x8000
	blank     = 0 // class that keeps the state
	other     = 1 // class of bytes in no word
)

// NewMatcher builds the automaton. Words hold neither blanks nor non-ASCII
// bytes; all words together have fewer than 32768 bytes and at most 62
// different ones.
func NewMatcher(words []string) (*Matcher, error) {
	m := &Matcher{words: len(words)}
	for i := range m.class {
		m.class[i] = other
	}
	for _, c := range " \t\r\n\v\f" {
		m.class[c] = blank
	}
	classes := uint8(2)
	type node struct {
		child map[uint8]int
		out   []int
		fail  int
	}
	nodes := []node{{child: map[uint8]int{}}}
	for id, w := range words {
		at := 0
		for i := 0; i < len(w); i++ {
			c := lower(w[i])
			if c >= 0x80 || m.class[c] == blank {
				return nil, fmt.Errorf("matcher: the word %q holds a blank or a byte that is not ASCII", w)
			}
			if m.class[c] == other {
				m.class[c] = classes
				m.class[upper(c)] = classes
				classes++
				if classes > 1<<classBits {
					return nil, errors.New("matcher: the words hold too many different bytes")
				}
			}
			cl := m.class[c]
			nx, ok := nodes[at].child[cl]
			if !ok {
				nx = len(nodes)
				nodes = append(nodes, node{child: map[uint8]int{}})
				nodes[at].child[cl] = nx
			}
			at = nx
		}
		nodes[at].out = append(nodes[at].out, id)
	}
	if len(nodes) >= hitBit {
		return nil, errors.New("matcher: the words are too long together")
	}
	m.next = make([]uint16, len(nodes)<<classBits)
	m.outs = make([][]int, len(nodes))
	// Breadth first, so that the failure state of a node is complete before it.
	queue := []int{0}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		fail := nodes[n].fail
		m.outs[n] = nodes[n].out
		if n != 0 {
			m.outs[n] = append(append([]int(nil), nodes[n].out...), m.outs[fail]...)
		}
		for c := range uint8(1 << classBits) {
			slot := n<<classBits | int(c)
			if c == blank {
				m.next[slot] = uint16(n)
				continue
			}
			child, ok := nodes[n].child[c]
			switch {
			case ok && n == 0:
				nodes[child].fail = 0
			case ok:
				nodes[child].fail = int(m.next[fail<<classBits|int(c)] &^ hitBit)
			case n == 0:
				child = 0
			default:
				m.next[slot] = m.next[fail<<classBits|int(c)]
				continue
			}
			if ok {
				queue = append(queue, child)
			}
			m.next[slot] = uint16(child)
		}
	}
	// A hit is announced on the step that completes a word, not on blanks after it.
	for slot, s := range m.next {
		if slot&(1<<classBits-1) != blank && len(m.outs[s&^hitBit]) > 0 {
			m.next[slot] = s | hitBit
		}
	}
	return m, nil
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// Hit is a word found: the offset just past its last byte.
type Hit struct {
	Word int
	End  int
}

// Find appends the hits of text to hits, in order of their ends.
func (m *Matcher) Find(text []byte, hits []Hit) []Hit {
	var s uint16
	next := m.next
	for i, c := range text {
		s = next[int(s&^hitBit)<<classBits|int(m.class[c])]
		if s&hitBit != 0 {
			for _, w := range m.outs[s&^hitBit] {
				hits = append(hits, Hit{w, i + 1})
			}
		}
	}
	return hits
}

// overlap is how far the first half of findFast reads into the second, so that
// a word across the middle is found.
const overlap = 256

// findFast is Find on long text: two halves side by side in one loop, since
// one automaton waits for its own last lookup most of the time. The hits are
// in order within a half; those of the second half follow.
func (m *Matcher) findFast(text []byte, hits, second []Hit) (first, rest []Hit) {
	n := len(text) / 2
	if n < 4*overlap {
		return m.Find(text, hits), second
	}
	a, b := text[:n], text[n:n+n]
	var s, t uint16
	next := m.next
	for i, c := range a {
		d := b[i]
		s = next[int(s&^hitBit)<<classBits|int(m.class[c])]
		t = next[int(t&^hitBit)<<classBits|int(m.class[d])]
		if (s|t)&hitBit != 0 {
			if s&hitBit != 0 {
				for _, w := range m.outs[s&^hitBit] {
					hits = append(hits, Hit{w, i + 1})
				}
			}
			if t&hitBit != 0 {
				for _, w := range m.outs[t&^hitBit] {
					second = append(second, Hit{w, n + i + 1})
				}
			}
		}
	}
	for i := n; i < n+overlap; i++ {
		s = next[int(s&^hitBit)<<classBits|int(m.class[text[i]])]
		if s&hitBit != 0 {
			for _, w := range m.outs[s&^hitBit] {
				hits = append(hits, Hit{w, i + 1})
			}
		}
	}
	for i := n + n; i < len(text); i++ {
		t = next[int(t&^hitBit)<<classBits|int(m.class[text[i]])]
		if t&hitBit != 0 {
			for _, w := range m.outs[t&^hitBit] {
				second = append(second, Hit{w, i + 1})
			}
		}
	}
	return hits, second
}

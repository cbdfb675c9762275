package filter

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// SyntaxError is text that is no filter.
type SyntaxError struct {
	// Offset is the number of bytes before the place.
	Offset int
	// Message is what HBase's own parser says, so that it can be looked up. A
	// gateway in HBase's place answers it as a
	// java.lang.IllegalArgumentException.
	Message string
	// Reason says more, if there is more to say.
	Reason string
}

func (e *SyntaxError) Error() string {
	s := fmt.Sprintf("filter at byte %d: %s", e.Offset, e.Message)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// What HBase's parser says.
const (
	incorrectString = "Incorrect Filter String"
	mismatched      = "Mismatched parenthesis"
	incorrectName   = "Incorrect Filter Name"
	incorrectList   = "Incorrect argument list"
)

// maxQuoted bounds how much of the text errors repeat.
const maxQuoted = 200

// Parse reads a filter in HBase's filter language. It takes what HBase 2.6
// takes and makes the same filter of it, except where HBase would lose an
// operator without a word; that is an error here.
//
//	PrefixFilter('a') AND (PageFilter(3) OR ValueFilter(=, 'binary:x'))
//
// SKIP and WHILE bind tightest, then AND, then OR. Inside a pair of parentheses
// HBase knows only one kind of operator, unless the weaker comes last: write
// (A OR (B AND C)). Keywords are upper case with blanks around; bytes stand in
// single quotes, in which ” is one quote and nothing else is special;
// operators are < <= = != >= >; comparators are 'binary:...',
// 'binaryprefix:...', 'regexstring:...', 'regexstringnocase:...' and
// 'substring:...', the last three with = and != only. [Language] lists the
// filters. Errors are *SyntaxError.
func Parse[B Bytes](text B) (Filter, error) {
	p := &parser{in: []byte(text)}
	return p.parse()
}

// operator is an entry of the operator stack.
type operator uint8

// Operators in HBase's order: those that bind tighter first.
const (
	opOpen operator = iota // an open parenthesis
	opSkip
	opWhile
	opAnd
	opOr
)

func (o operator) strength() int {
	switch o {
	case opSkip, opWhile:
		return 1
	case opAnd:
		return 2
	}
	return 3
}

type pending struct {
	op operator
	at int
}

// operand is a filter read, and how deep it is nested.
type operand struct {
	filter Filter
	depth  int
	at     int
}

// parser is HBase's: two stacks, one of operators and one of filters, worked
// off when a weaker operator, a closing parenthesis or the end comes. Odd texts
// depend on just that, such as "A SKIP AND B", which is read as SKIP A AND B.
type parser struct {
	in        []byte
	operators []pending
	operands  []operand
}

func (p *parser) fail(at int, message, reason string) error {
	return &SyntaxError{Offset: at, Message: message, Reason: reason}
}

func (p *parser) parse() (Filter, error) {
	for i := 0; i < len(p.in); {
		c := p.in[i]
		if c == ' ' || c == '\t' {
			i++
			continue
		}
		if c == '(' {
			p.operators = append(p.operators, pending{opOpen, i})
			i++
			continue
		}
		if c == ')' {
			if err := p.close(i); err != nil {
				return nil, err
			}
			i++
			continue
		}
		if op, n := p.keyword(i); n > 0 {
			for len(p.operators) > 0 && p.top() != opOpen && p.top().strength() < op.strength() {
				if err := p.reduce(); err != nil {
					return nil, err
				}
			}
			p.operators = append(p.operators, pending{op, i})
			i += n
			continue
		}
		n, err := p.simple(i)
		if err != nil {
			return nil, err
		}
		i += n
	}
	for len(p.operators) > 0 {
		// A parenthesis that is still open closes here, as with HBase.
		if p.top() == opOpen {
			if len(p.operands) == 0 {
				return nil, p.fail(p.operators[len(p.operators)-1].at, incorrectString, "nothing follows the parenthesis")
			}
			p.operators = p.operators[:len(p.operators)-1]
			continue
		}
		if err := p.reduce(); err != nil {
			return nil, err
		}
	}
	switch len(p.operands) {
	case 0:
		return nil, p.fail(len(p.in), incorrectString, "there is no filter")
	case 1:
		return p.operands[0].filter, nil
	}
	return nil, p.fail(p.operands[1].at, incorrectString, "no operator between this filter and the one before")
}

func (p *parser) top() operator { return p.operators[len(p.operators)-1].op }

// close works off a group.
func (p *parser) close(at int) error {
	if len(p.operators) == 0 {
		return p.fail(at, mismatched, "nothing is open here")
	}
	if p.top() != opOpen {
		if err := p.reduce(); err != nil {
			return err
		}
		if len(p.operators) == 0 {
			return p.fail(at, mismatched, "nothing is open here")
		}
		if p.top() != opOpen {
			// HBase drops this operator and goes on until it misses something.
			return p.fail(p.operators[len(p.operators)-1].at, mismatched,
				"inside parentheses an operator behind which a stronger one stands needs parentheses around that: (A OR (B AND C)), (A AND (SKIP B))")
		}
	}
	p.operators = p.operators[:len(p.operators)-1]
	return nil
}

// keyword finds an operator at i and its length. HBase looks at the bytes
// around it, and a tab is no blank there.
func (p *parser) keyword(i int) (operator, int) {
	for _, k := range [...]struct {
		word string
		op   operator
	}{{"OR", opOr}, {"AND", opAnd}, {"SKIP", opSkip}, {"WHILE", opWhile}} {
		end := i + len(k.word)
		if end >= len(p.in) || string(p.in[i:end]) != k.word || p.in[end] != ' ' && p.in[end] != '(' {
			continue
		}
		unary := k.op == opSkip || k.op == opWhile
		if i == 0 {
			if unary {
				return k.op, len(k.word)
			}
			continue
		}
		before := p.in[i-1]
		if before == ' ' || before == ')' || unary && before == '(' {
			return k.op, len(k.word)
		}
	}
	return 0, 0
}

// reduce applies the operator on top to the filters it takes: a run of the same
// AND or OR makes one list.
func (p *parser) reduce() error {
	last := len(p.operators) - 1
	op := p.operators[last]
	pop := func(takes string) (operand, error) {
		n := len(p.operands) - 1
		if n < 0 {
			return operand{}, p.fail(op.at, "Incorrect input string - "+takes, "")
		}
		o := p.operands[n]
		p.operands = p.operands[:n]
		return o, nil
	}
	var made operand
	switch op.op {
	case opSkip, opWhile:
		name := "SKIP"
		if op.op == opWhile {
			name = "WHILE"
		}
		in, err := pop("a " + name + " wraps a filter")
		if err != nil {
			return err
		}
		made = operand{Skip(in.filter), in.depth + 1, op.at}
		if op.op == opWhile {
			made.filter = WhileMatch(in.filter)
		}
		p.operators = p.operators[:last]
	default:
		takes, listOp := "an AND needs two filters", MustPassAll
		if op.op == opOr {
			takes, listOp = "an OR needs two filters", MustPassOne
		}
		run := 0
		for run <= last && p.operators[last-run].op == op.op {
			run++
		}
		if len(p.operands) < run+1 {
			op = p.operators[last-run+1]
			return p.fail(op.at, "Incorrect input string - "+takes, "")
		}
		from := len(p.operands) - run - 1
		list := &FilterList{Operator: listOp, Filters: make([]Filter, 0, run+1)}
		made = operand{filter: list, at: p.operands[from].at}
		for _, o := range p.operands[from:] {
			list.Filters = append(list.Filters, o.filter)
			made.depth = max(made.depth, o.depth+1)
		}
		p.operands = p.operands[:from]
		p.operators = p.operators[:len(p.operators)-run]
	}
	if made.depth > maxDepth {
		return p.fail(op.at, incorrectString, fmt.Sprintf("filters are nested more than %d deep", maxDepth))
	}
	p.operands = append(p.operands, made)
	return nil
}

// simple reads one filter with its arguments, up to the first closing
// parenthesis outside of quotes, and gives its length.
func (p *parser) simple(start int) (int, error) {
	end, quotes := -1, 0
	for i := start; i < len(p.in); i++ {
		switch p.in[i] {
		case '\'':
			if i+1 < len(p.in) && p.in[i+1] == '\'' {
				i++
			} else {
				quotes++
			}
			continue
		case ')':
			if quotes%2 == 0 {
				end = i + 1
			}
		}
		if end >= 0 {
			break
		}
	}
	if end < 0 {
		reason := "a filter with its arguments in parentheses expected"
		switch {
		case quotes%2 == 1:
			reason = "a quote is open at the end"
		case bytes.IndexByte(p.in[start:], '(') > 0:
			reason = "the parenthesis of this filter does not close"
		}
		return 0, p.fail(start, incorrectString, reason)
	}
	text := p.in[start:end]
	n := bytes.IndexAny(text, "( ")
	if n <= 0 {
		return 0, p.fail(start, incorrectName, "")
	}
	name := string(text[:n])
	list, err := p.arguments(start, text)
	if err != nil {
		return 0, err
	}
	e := entryOf(name)
	if e == nil {
		return 0, p.fail(start, "Filter Name "+shown(text[:n])+" not supported", "")
	}
	f, err := e.make(&arguments{list: list})
	if err == nil {
		_, err = f.Marshal() // which knows what HBase refuses
	}
	if err != nil {
		at := start
		if bad := (*argumentError)(nil); errors.As(err, &bad) && bad.at > 0 {
			at = bad.at
		}
		return 0, p.fail(at, "Incorrect filter string "+shown(text), err.Error())
	}
	p.operands = append(p.operands, operand{filter: f, at: start})
	return end - start, nil
}

// shown is text as errors show it.
func shown(b []byte) string {
	if len(b) <= maxQuoted {
		return string(b)
	}
	n := maxQuoted
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return string(b[:n]) + "..."
}

// arguments takes the text of one filter apart. Blanks and commas separate;
// HBase does not count them.
func (p *parser) arguments(start int, text []byte) ([]argument, error) {
	open := bytes.IndexByte(text, '(')
	if open < 0 {
		return nil, p.fail(start, incorrectList, "no parenthesis follows the name")
	}
	separates := func(c byte) bool { return c == ' ' || c == ',' || c == ')' }
	var list []argument
	for i := open + 1; i < len(text); i++ {
		if separates(text[i]) {
			continue
		}
		if text[i] != '\'' {
			from := i
			for i < len(text) && !separates(text[i]) {
				i++
			}
			list = append(list, argument{text: text[from:i], at: start + from})
			continue
		}
		value, n, ok := unquote(text[i:])
		if !ok {
			return nil, p.fail(start+i, incorrectList, "the quote that opens here does not close")
		}
		list = append(list, argument{text: value, quoted: true, at: start + i})
		i += n // and over the byte behind the quote, whatever it is
	}
	return list, nil
}

// unquote reads a quoted argument at the beginning of b: its bytes, and how
// many it takes up.
func unquote(b []byte) (value []byte, n int, ok bool) {
	value = []byte{}
	for i := 1; i < len(b); i++ {
		if b[i] == '\'' {
			if i+1 == len(b) || b[i+1] != '\'' {
				return value, i + 1, true
			}
			i++
		}
		value = append(value, b[i])
	}
	return nil, 0, false
}

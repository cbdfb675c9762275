package shell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Value is an argument: String, int64, float64, bool, nil, Symbol, []Value or
// *Hash.
type Value any

// String is a string literal as bytes: "\x00" in double quotes is one byte.
type String string

// Symbol is a bare word: a constant such as NAME or a method name.
type Symbol string

// Hash is a Ruby hash with its order kept.
type Hash struct {
	Keys   []string
	Values []Value
}

// Get gives the value of a key; keys of HBase's shell are upper case.
func (h *Hash) Get(key string) (Value, bool) {
	if h == nil {
		return nil, false
	}
	for i, k := range h.Keys {
		if k == key {
			return h.Values[i], true
		}
	}
	return nil, false
}

// Command is one parsed line.
type Command struct {
	Name string
	Args []Value
}

// SyntaxError says where a line stops making sense.
type SyntaxError struct {
	Line   string
	Column int // 1-based, in bytes
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("column %d: %s", e.Column, e.Reason)
}

// Bounds of what one line may hold, so that hostile input stays cheap.
const (
	maxLine  = 1 << 20
	maxDepth = 32
)

// Parse reads one command line. An empty or comment line gives a Command
// without a name.
func Parse(line string) (Command, error) {
	if len(line) > maxLine {
		return Command{}, &SyntaxError{Column: maxLine, Reason: "line is longer than 1 MiB"}
	}
	p := &parser{in: line}
	p.space()
	if p.end() {
		return Command{}, nil
	}
	name := p.word()
	if name == "" {
		return Command{}, p.fail("a command name expected, found %s", p.here())
	}
	cmd := Command{Name: name}
	p.space()
	closing := byte(0)
	if p.peek() == '(' {
		p.at++
		closing = ')'
		p.space()
	}
	for first := true; ; first = false {
		p.space()
		if p.end() || closing != 0 && p.peek() == closing {
			break
		}
		if !first {
			if p.peek() != ',' {
				return cmd, p.fail("a comma expected between arguments, found %s", p.here())
			}
			p.at++
			p.space()
			if p.end() {
				return cmd, p.fail("an argument expected after the comma")
			}
		}
		v, err := p.argument(cmd.Args)
		if err != nil {
			return cmd, err
		}
		if v != appended {
			cmd.Args = append(cmd.Args, v)
		}
	}
	if closing != 0 {
		if p.peek() != closing {
			return cmd, p.fail("a closing parenthesis expected")
		}
		p.at++
		p.space()
	}
	if !p.end() {
		return cmd, p.fail("nothing expected after the command, found %s", p.here())
	}
	return cmd, nil
}

type parser struct {
	in    string
	at    int
	depth int
}

// appended marks a bare KEY => value that joined the hash before it.
var appended = new(int)

// argument reads a value, or a bare `KEY => value` as Ruby's trailing hash:
// consecutive ones make one hash.
func (p *parser) argument(sofar []Value) (Value, error) {
	start := p.at
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	key, isKey := hashKey(v)
	p.space()
	if !isKey || !p.arrow() {
		return v, nil
	}
	if key == "" {
		p.at = start
		return nil, p.fail("an empty hash key")
	}
	p.space()
	val, err := p.value()
	if err != nil {
		return nil, err
	}
	if n := len(sofar); n > 0 {
		if b, ok := sofar[n-1].(*bareHash); ok {
			b.add(key, val)
			return appended, nil
		}
	}
	h := &bareHash{}
	h.add(key, val)
	return h, nil
}

// bareHash is a trailing hash without braces while it is being gathered; the
// commands see it as *Hash (see HashOf).
type bareHash struct{ Hash }

func (h *Hash) add(key string, v Value) {
	h.Keys = append(h.Keys, key)
	h.Values = append(h.Values, v)
}

// HashOf gives the hash in v, whether written with braces or without.
func HashOf(v Value) (*Hash, bool) {
	switch h := v.(type) {
	case *Hash:
		return h, true
	case *bareHash:
		return &h.Hash, true
	}
	return nil, false
}

func hashKey(v Value) (string, bool) {
	switch k := v.(type) {
	case Symbol:
		return string(k), true
	case String:
		return string(k), true
	}
	return "", false
}

func (p *parser) value() (Value, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	p.space()
	if p.end() {
		return nil, p.fail("a value expected")
	}
	switch c := p.peek(); {
	case c == '\'':
		return p.single()
	case c == '"':
		return p.double()
	case c == '[':
		return p.array()
	case c == '{':
		return p.hash()
	case c == ':' && p.at+1 < len(p.in) && isWord(rune(p.in[p.at+1])):
		p.at++
		return Symbol(p.word()), nil
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	w := p.word()
	switch w {
	case "":
		return nil, p.fail("a value expected, found %s", p.here())
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "nil":
		return nil, nil
	}
	return Symbol(w), nil
}

// single reads a '...' literal: only \\ and \' are escapes, as in Ruby.
func (p *parser) single() (Value, error) {
	start := p.at
	var s strings.Builder
	for p.at++; p.at < len(p.in); p.at++ {
		switch c := p.in[p.at]; c {
		case '\'':
			p.at++
			return String(s.String()), nil
		case '\\':
			if p.at+1 < len(p.in) && (p.in[p.at+1] == '\'' || p.in[p.at+1] == '\\') {
				p.at++
				c = p.in[p.at]
			}
			s.WriteByte(c)
		default:
			s.WriteByte(c)
		}
	}
	p.at = start
	return nil, p.fail("the string that begins here has no closing quote")
}

// double reads a "..." literal with Ruby's escapes; \xHH is one byte.
func (p *parser) double() (Value, error) {
	start := p.at
	var s strings.Builder
	for p.at++; p.at < len(p.in); p.at++ {
		c := p.in[p.at]
		if c == '"' {
			p.at++
			return String(s.String()), nil
		}
		if c != '\\' || p.at+1 >= len(p.in) {
			s.WriteByte(c)
			continue
		}
		p.at++
		switch c = p.in[p.at]; c {
		case 'n':
			s.WriteByte('\n')
		case 't':
			s.WriteByte('\t')
		case 'r':
			s.WriteByte('\r')
		case 'e':
			s.WriteByte(0x1b)
		case 'a':
			s.WriteByte(7)
		case 'b':
			s.WriteByte(8)
		case 'f':
			s.WriteByte('\f')
		case 'v':
			s.WriteByte('\v')
		case 's':
			s.WriteByte(' ')
		case 'x':
			s.WriteByte(byte(p.digits(2, 16)))
		case 'u':
			s.WriteRune(rune(p.digits(4, 16)))
		case '0', '1', '2', '3', '4', '5', '6', '7':
			p.at--
			s.WriteByte(byte(p.digits(3, 8)))
		default:
			s.WriteByte(c)
		}
	}
	p.at = start
	return nil, p.fail("the string that begins here has no closing quote")
}

// digits reads up to n digits after the current position and stays on the last.
func (p *parser) digits(n, base int) int {
	v := 0
	for ; n > 0 && p.at+1 < len(p.in); n-- {
		d, err := strconv.ParseUint(p.in[p.at+1:p.at+2], base, 8)
		if err != nil {
			break
		}
		v = v*base + int(d)
		p.at++
	}
	return v
}

func (p *parser) array() (Value, error) {
	open := p.at
	p.at++
	list := []Value{}
	for {
		p.space()
		if p.peek() == ']' {
			p.at++
			return list, nil
		}
		if p.end() {
			p.at = open
			return nil, p.fail("the array that begins here has no closing bracket")
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case ']', 0: // the loop's head closes the array, or says it never closes
		default:
			return nil, p.fail("a comma or ] expected, found %s", p.here())
		}
	}
}

func (p *parser) hash() (Value, error) {
	open := p.at
	p.at++
	h := &Hash{}
	for {
		p.space()
		if p.peek() == '}' {
			p.at++
			return h, nil
		}
		if p.end() {
			p.at = open
			return nil, p.fail("the hash that begins here has no closing brace")
		}
		k, err := p.value()
		if err != nil {
			return nil, err
		}
		key, ok := hashKey(k)
		if !ok {
			return nil, p.fail("a hash key must be a name or a string")
		}
		p.space()
		if !p.arrow() {
			return nil, p.fail("=> expected after %s, found %s", key, p.here())
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		h.add(key, v)
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case '}', 0:
		default:
			return nil, p.fail("a comma or } expected, found %s", p.here())
		}
	}
}

func (p *parser) arrow() bool {
	if strings.HasPrefix(p.in[p.at:], "=>") {
		p.at += 2
		return true
	}
	if p.peek() == ':' && (p.at+1 >= len(p.in) || p.in[p.at+1] == ' ') {
		p.at++
		return true
	}
	return false
}

func (p *parser) number() (Value, error) {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	for p.at < len(p.in) && (isWord(rune(p.in[p.at])) || p.in[p.at] == '.') {
		p.at++
	}
	text := strings.ReplaceAll(p.in[start:p.at], "_", "")
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return n, nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f, nil
	}
	p.at = start
	return nil, p.fail("%q is not a number", text)
}

// word reads a bare word; org.apache.hadoop.hbase.X and A::B count as one.
func (p *parser) word() string {
	start := p.at
	for p.at < len(p.in) {
		r, n := utf8.DecodeRuneInString(p.in[p.at:])
		if r == ':' && strings.HasPrefix(p.in[p.at:], "::") {
			p.at += 2
			continue
		}
		if !isWord(r) && !(r == '.' && p.at > start) && !((r == '?' || r == '!') && p.at > start) {
			break
		}
		p.at += n
	}
	return p.in[start:p.at]
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// space skips blanks and a comment to the end of the line.
func (p *parser) space() {
	for p.at < len(p.in) {
		switch p.in[p.at] {
		case ' ', '\t', '\r', '\n', ';':
			p.at++
		case '#':
			p.at = len(p.in)
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return 0
}

func (p *parser) end() bool { return p.at >= len(p.in) }

func (p *parser) here() string {
	if p.end() {
		return "the end of the line"
	}
	r, _ := utf8.DecodeRuneInString(p.in[p.at:])
	return strconv.QuoteRune(r)
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{Line: p.in, Column: p.at + 1, Reason: fmt.Sprintf(format, args...)}
}

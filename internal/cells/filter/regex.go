package filter

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Flags of java.util.regex.Pattern.
const (
	javaUnixLines     = 0x01
	javaIgnoreCase    = 0x02
	javaComments      = 0x04
	javaMultiline     = 0x08
	javaLiteral       = 0x10
	javaDotAll        = 0x20
	javaUnicodeCase   = 0x40
	javaCanonEq       = 0x80
	javaUnicodeClass  = 0x100
	javaSupportedMask = javaUnixLines | javaIgnoreCase | javaComments | javaMultiline | javaLiteral | javaDotAll | javaUnicodeCase
)

// regexComparator is RegexStringComparator: 0 if the pattern is found.
type regexComparator struct {
	expected
	re     *regexp.Regexp
	decode func([]byte) []byte
	// notAtEnd is what must not stand before the end; see notBeforeEnd.
	notAtEnd string
}

func (c *regexComparator) Compare(b []byte) (int, error) {
	if c.decode != nil {
		b = c.decode(b)
	}
	if c.re.Match(b) && (c.notAtEnd == "" || !bytes.HasSuffix(b, []byte(c.notAtEnd))) {
		return 0, nil
	}
	return 1, nil
}

// notBeforeEnd is the one look-behind that HBase itself sends: by it the shell's
// list_quotas tells a table's quotas from a namespace's.
const notBeforeEnd = `(?<!\Q:\E)$`

// newRegex compiles a Java pattern with Go's engine where the two mean the
// same, and refuses it by name where they do not: a filter that silently
// matched something else would be worse.
func newRegex(pattern string, flags int32, charset, engine string) (Comparator, error) {
	c := &regexComparator{expected: expected{[]byte(pattern)}}
	joni := strings.EqualFold(engine, "JONI")
	switch strings.ToUpper(charset) {
	case "UTF-8", "UTF8":
		broken := []byte("\uFFFD") // what Java decodes a broken byte to
		if joni {
			broken = []byte("\U0010FFFF") // JONI looks at bytes: no character
		}
		c.decode = func(b []byte) []byte {
			if utf8.Valid(b) {
				return b
			}
			return bytes.ToValidUTF8(b, broken)
		}
	case "US-ASCII", "ASCII":
		c.decode = asciiToUTF8
	case "ISO-8859-1", "ISO8859_1", "LATIN1":
		c.decode = latin1ToUTF8
	default:
		return nil, cells.IOException("java.nio.charset.UnsupportedCharsetException: " + charset)
	}
	if engine != "" && !joni && !strings.EqualFold(engine, "JAVA") {
		return nil, cells.IOException("java.lang.IllegalArgumentException: No enum constant org.apache.hadoop.hbase.filter.RegexStringComparator.EngineType." + engine)
	}
	if joni {
		flags &^= javaLiteral | javaComments // which JONI is not told of
		if flags&javaIgnoreCase != 0 {
			flags |= javaUnicodeCase
		}
	}
	if flags&^javaSupportedMask != 0 {
		return nil, unsupportedRegex(pattern, "pattern flags 0x"+strconv.FormatInt(int64(flags&^javaSupportedMask), 16))
	}
	if head, ok := strings.CutSuffix(pattern, notBeforeEnd); ok && flags == 0 {
		pattern, c.notAtEnd = head+"$", ":"
	}
	re, err := compileJava(pattern, flags)
	if err != nil {
		return nil, err
	}
	c.re = re
	return c, nil
}

func unsupportedRegex(pattern, why string) error {
	return cells.IOException("unsupported: " + why + " in the regular expression " + strconv.Quote(pattern))
}

func compileJava(pattern string, flags int32) (*regexp.Regexp, error) {
	parseFlags := syntax.Perl &^ syntax.OneLine
	parseFlags |= syntax.OneLine // "$" is the end of text unless multi-line
	if flags&javaMultiline != 0 {
		parseFlags &^= syntax.OneLine
	}
	if flags&javaDotAll != 0 {
		parseFlags |= syntax.DotNL
	}
	if flags&javaLiteral != 0 {
		pattern = regexp.QuoteMeta(pattern)
	} else {
		translated, err := javaSyntax(pattern, flags&javaComments != 0)
		if err != nil {
			return nil, err
		}
		pattern = translated
	}
	if flags&javaIgnoreCase != 0 && flags&javaUnicodeCase != 0 {
		parseFlags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, parseFlags)
	if err != nil {
		var e *syntax.Error
		if errors.As(err, &e) && e.Code == syntax.ErrMissingBracket {
			return nil, cells.IOException("java.util.regex.PatternSyntaxException: Unclosed character class near index " + strconv.Itoa(len(pattern)-1))
		}
		return nil, unsupportedRegex(pattern, err.Error())
	}
	t := treeRewriter{unixLines: flags&javaUnixLines != 0, asciiFold: flags&javaIgnoreCase != 0 && flags&javaUnicodeCase == 0}
	re, err := regexp.Compile(t.rewrite(tree).String())
	if err != nil {
		return nil, unsupportedRegex(pattern, err.Error())
	}
	return re, nil
}

// javaSyntax rewrites what Java and Go both accept but read differently, and
// refuses what only Java has a meaning for. With comments, white space and what
// follows a # count for nothing.
func javaSyntax(p string, comments bool) (string, error) {
	var out strings.Builder
	class := false // inside [ ]
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case comments && strings.IndexByte(" \t\n\x0b\f\r", c) >= 0:
		case comments && c == '#' && !class:
			for i+1 < len(p) && p[i+1] != '\n' && p[i+1] != '\r' {
				i++
			}
		case c == '\\' && i+1 < len(p):
			i++
			s, used, err := javaEscape(p, i, class)
			if err != nil {
				return "", err
			}
			out.WriteString(s)
			i += used
		case !class && c == '[':
			class = true
			out.WriteByte(c)
			if i+1 < len(p) && p[i+1] == '^' {
				out.WriteByte('^')
				i++
			}
			if i+1 < len(p) && p[i+1] == ']' { // a literal, in both
				out.WriteString(`\]`)
				i++
			}
		case class && c == ']':
			class = false
			out.WriteByte(c)
		case class && c == '[':
			return "", unsupportedRegex(p, "a class inside a class")
		case class && c == '&' && i+1 < len(p) && p[i+1] == '&':
			return "", unsupportedRegex(p, "an intersection of classes")
		case !class && (c == '+' && i > 0 && strings.IndexByte("*+?}", p[i-1]) >= 0 && !escapedAt(p, i-1)):
			return "", unsupportedRegex(p, "a possessive quantifier")
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), nil
}

// escapedAt says whether the byte at i is escaped by backslashes before it.
func escapedAt(p string, i int) bool {
	n := 0
	for i--; i >= 0 && p[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

const (
	javaSpace    = `\t\n\x0B\f\r `
	javaVertical = `\n\x0B\f\r\x{85}\x{2028}\x{2029}`
	javaHoriz    = ` \t\x{A0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}`
)

// javaEscape rewrites the escape whose letter is at p[i]; used counts further
// bytes it takes up.
func javaEscape(p string, i int, class bool) (s string, used int, err error) {
	set := func(members string, negated bool) (string, int, error) {
		switch {
		case class && negated:
			return "", 0, unsupportedRegex(p, `\`+p[i:i+1]+" inside a class")
		case class:
			return members, 0, nil
		case negated:
			return "[^" + members + "]", 0, nil
		}
		return "[" + members + "]", 0, nil
	}
	switch c := p[i]; c {
	case 's':
		return set(javaSpace, false)
	case 'S':
		return set(javaSpace, true)
	case 'v':
		return set(javaVertical, false)
	case 'V':
		return set(javaVertical, true)
	case 'h':
		return set(javaHoriz, false)
	case 'H':
		return set(javaHoriz, true)
	case 'R':
		if !class {
			return `(?:\r\n|[` + javaVertical + `])`, 0, nil
		}
	case 'e':
		return `\x1B`, 0, nil
	case 'Z':
		if !class {
			return `(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z`, 0, nil
		}
	case 'u':
		if i+4 < len(p) {
			if n, err := strconv.ParseUint(p[i+1:i+5], 16, 32); err == nil && (n < 0xD800 || n > 0xDFFF) {
				return `\x{` + p[i+1:i+5] + `}`, 4, nil
			}
		}
	case '0':
		j := i + 1
		for j < len(p) && j < i+4 && p[j] >= '0' && p[j] <= '7' {
			j++
		}
		if n, err := strconv.ParseUint(p[i+1:j], 8, 32); err == nil && n <= 0xFF {
			return `\x{` + strconv.FormatUint(n, 16) + `}`, j - i - 1, nil
		}
	case 'Q':
		end := strings.Index(p[i+1:], `\E`)
		if end < 0 {
			return regexp.QuoteMeta(p[i+1:]), len(p) - i - 1, nil
		}
		return regexp.QuoteMeta(p[i+1 : i+1+end]), end + 2, nil
	case '1', '2', '3', '4', '5', '6', '7', '8', '9', 'k':
		return "", 0, unsupportedRegex(p, "a back reference")
	case 'C': // Go's single byte; nothing in Java
		return "", 0, unsupportedRegex(p, `\C`)
	default:
		if c >= utf8.RuneSelf {
			_, n := utf8.DecodeRuneInString(p[i:])
			return p[i : i+n], n - 1, nil
		}
		return `\` + string(c), 0, nil
	}
	return "", 0, unsupportedRegex(p, `\`+p[i:i+1])
}

// treeRewriter changes a parsed pattern where the same syntax means other
// things in Java.
type treeRewriter struct {
	unixLines bool
	asciiFold bool
}

func (t *treeRewriter) rewrite(re *syntax.Regexp) *syntax.Regexp {
	for i, sub := range re.Sub {
		re.Sub[i] = t.rewrite(sub)
	}
	switch re.Op {
	case syntax.OpAnyCharNotNL:
		if !t.unixLines {
			return &syntax.Regexp{Op: syntax.OpCharClass, Rune: []rune{
				0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, 0x84, 0x86, 0x2027, 0x202A, unicode.MaxRune}}
		}
	case syntax.OpEndText:
		if re.Flags&syntax.WasDollar != 0 {
			return t.beforeLastLineEnd()
		}
	case syntax.OpLiteral:
		if t.asciiFold && re.Flags&syntax.FoldCase == 0 {
			return foldLiteral(re.Rune)
		}
	case syntax.OpCharClass:
		if t.asciiFold {
			re.Rune = foldClass(re.Rune)
		}
	}
	return re
}

// beforeLastLineEnd is Java's "$": the end, or the place before a line end
// that ends the text.
func (t *treeRewriter) beforeLastLineEnd() *syntax.Regexp {
	text := `(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z`
	if t.unixLines {
		text = `\n?\z`
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil { // the texts above are right
		return &syntax.Regexp{Op: syntax.OpEndText}
	}
	return re
}

func otherCase(r rune) (rune, bool) {
	switch {
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A', true
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a', true
	}
	return r, false
}

func foldLiteral(runes []rune) *syntax.Regexp {
	whole := &syntax.Regexp{Op: syntax.OpConcat}
	for _, r := range runes {
		o, has := otherCase(r)
		if !has {
			whole.Sub = append(whole.Sub, &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{r}})
			continue
		}
		a, b := min(r, o), max(r, o)
		whole.Sub = append(whole.Sub, &syntax.Regexp{Op: syntax.OpCharClass, Rune: []rune{a, a, b, b}})
	}
	return whole
}

// foldClass adds the other case of the ASCII letters in a class.
func foldClass(ranges []rune) []rune {
	in := func(r rune) bool {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return true
			}
		}
		return false
	}
	// Only the 52 letters can change; the rest of the class stays.
	var add []rune
	for r := 'a'; r <= 'z'; r++ {
		o, _ := otherCase(r)
		if in(r) && !in(o) {
			add = append(add, o, o)
		} else if in(o) && !in(r) {
			add = append(add, r, r)
		}
	}
	if len(add) == 0 {
		return ranges
	}
	return mergeRanges(append(add, ranges...))
}

func mergeRanges(ranges []rune) []rune {
	// Insertion sort by start: classes are short.
	for i := 2; i < len(ranges); i += 2 {
		for k := i; k >= 2 && ranges[k] < ranges[k-2]; k -= 2 {
			ranges[k], ranges[k-2] = ranges[k-2], ranges[k]
			ranges[k+1], ranges[k-1] = ranges[k-1], ranges[k+1]
		}
	}
	out := ranges[:2:2]
	for i := 2; i < len(ranges); i += 2 {
		if last := len(out) - 1; ranges[i] <= out[last]+1 {
			out[last] = max(out[last], ranges[i+1])
		} else {
			out = append(out, ranges[i], ranges[i+1])
		}
	}
	return out
}

func asciiToUTF8(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c < utf8.RuneSelf {
			out = append(out, c)
		} else {
			out = utf8.AppendRune(out, utf8.RuneError)
		}
	}
	return out
}

func latin1ToUTF8(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		out = utf8.AppendRune(out, rune(c))
	}
	return out
}

package filter

import (
	"strings"
	"unicode/utf8"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// RegexFlags are those of java.util.regex.Pattern.
type RegexFlags int32

// Flags of java.util.regex.Pattern.
const (
	RegexUnixLines   RegexFlags = 0x01
	RegexIgnoreCase  RegexFlags = 0x02 // of ASCII letters
	RegexComments    RegexFlags = 0x04
	RegexMultiline   RegexFlags = 0x08
	RegexLiteral     RegexFlags = 0x10
	RegexDotAll      RegexFlags = 0x20
	RegexUnicodeCase RegexFlags = 0x40
	// RegexUnicodeClass makes \w, \d and \s know all of Unicode.
	RegexUnicodeClass RegexFlags = 0x100
)

// joniFlags are all that the engine JONI is told of.
const joniFlags = RegexIgnoreCase | RegexMultiline | RegexDotAll

// Engines of regular expressions.
const (
	EngineJava = "JAVA"
	EngineJoni = "JONI" // works on bytes; known to the servers of HBase 1.0 and later
)

// RegexStringComparator holds for values in which a Java regular expression
// finds a match. Use it with Equal or NotEqual.
type RegexStringComparator struct {
	Pattern string
	Flags   RegexFlags
	// Charset is how values are decoded, by Java's name. Default UTF-8.
	Charset string
	// Engine is EngineJava or EngineJoni. Default EngineJava.
	Engine string
}

// Regex holds for values in which the Java regular expression finds a match. A
// dot matches line ends, as HBase's Java client has it: the flags are
// RegexDotAll. Use it with Equal or NotEqual.
func Regex(pattern string) *RegexStringComparator {
	return &RegexStringComparator{Pattern: pattern, Flags: RegexDotAll}
}

// RegexNoCase is [Regex] with the case of ASCII letters ignored.
func RegexNoCase(pattern string) *RegexStringComparator {
	return &RegexStringComparator{Pattern: pattern, Flags: RegexDotAll | RegexIgnoreCase}
}

// Name is the full Java class name.
func (c *RegexStringComparator) Name() string { return javaPackage + "RegexStringComparator" }

// Marshal gives the protobuf bytes.
func (c *RegexStringComparator) Marshal() ([]byte, error) {
	m := &pb.RegexStringComparator{Pattern: &c.Pattern, PatternFlags: new(int32(c.wireFlags())), Charset: new(c.charset()), Engine: new(c.engine())}
	var err error
	switch {
	case !utf8.ValidString(c.Pattern):
		err = invalid("RegexStringComparator", "the pattern is no valid UTF-8")
	case c.engine() != EngineJava && c.engine() != EngineJoni:
		err = invalid("RegexStringComparator", "engine %q is none of HBase's", c.Engine)
	case !utf8.ValidString(c.Charset):
		err = invalid("RegexStringComparator", "the name of the charset is no valid UTF-8")
	}
	return pack("RegexStringComparator", m, err)
}

func (c *RegexStringComparator) charset() string {
	if c.Charset == "" {
		return "UTF-8"
	}
	return c.Charset
}

func (c *RegexStringComparator) engine() string {
	if c.Engine == "" {
		return EngineJava
	}
	return c.Engine
}

// wireFlags are the flags as HBase's Java client sends them: for JONI those it
// knows, for Java those in effect behind a pattern's leading (?...) groups. Java
// also counts such groups in the middle, and so has servers apply them to what
// stands before; that is not copied.
func (c *RegexStringComparator) wireFlags() RegexFlags {
	flags := c.Flags
	if c.engine() == EngineJoni {
		return flags & joniFlags
	}
	for p := c.Pattern; flags&RegexLiteral == 0; {
		on, off, n := inlineFlags(p)
		if n == 0 {
			break
		}
		flags, p = flags&^off|on, p[n:]
	}
	return flags
}

// inlineFlags reads one (?on-off) group at the beginning of a pattern, and
// gives its length, or 0 if there is none.
func inlineFlags(p string) (on, off RegexFlags, n int) {
	rest, ok := strings.CutPrefix(p, "(?")
	if !ok {
		return 0, 0, 0
	}
	into := &on
	for i := range len(rest) {
		switch rest[i] {
		case 'i':
			*into |= RegexIgnoreCase
		case 'm':
			*into |= RegexMultiline
		case 's':
			*into |= RegexDotAll
		case 'd':
			*into |= RegexUnixLines
		case 'u':
			*into |= RegexUnicodeCase
		case 'x':
			*into |= RegexComments
		case 'U':
			*into |= RegexUnicodeClass | RegexUnicodeCase
		case '-':
			into = &off
		case ')':
			return on, off, len("(?") + i + 1
		default:
			return 0, 0, 0
		}
	}
	return 0, 0, 0
}

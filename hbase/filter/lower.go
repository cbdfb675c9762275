package filter

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// javaLower is Java's String.toLowerCase in the root locale. It differs from
// Go's strings.ToLower in the two letters whose lower case is not one letter of
// its own: a capital I with dot above becomes i and a combining dot, and a
// capital sigma at the end of a word becomes a final sigma.
func javaLower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == 'İ':
			b.WriteString("i\u0307")
		case r == 'Σ' && casedBefore(s[:i]) && !casedAfter(s[i+len("Σ"):]):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// casedBefore says whether the last character that is not skipped over has
// case.
func casedBefore(s string) bool {
	for len(s) > 0 {
		r, n := utf8.DecodeLastRuneInString(s)
		if !ignorable(r) {
			return cased(r)
		}
		s = s[:len(s)-n]
	}
	return false
}

func casedAfter(s string) bool {
	for _, r := range s {
		if !ignorable(r) {
			return cased(r)
		}
	}
	return false
}

func cased(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) }

// ignorable is about Unicode's property Case_Ignorable.
func ignorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) || strings.ContainsRune("'.:·\u2018\u2019\u2024\u2027", r)
}

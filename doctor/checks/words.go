package checks

import (
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/readers"
)

// word is a text that matters, without blanks, and how to read the fact it
// announces. at is the offset just after the word in the squeezed text.
type word struct {
	text string
	read func(x *extraction, at int)
}

// extraction is the state of reading one entry.
type extraction struct {
	e    *readers.Entry
	s    string
	file string
	out  []Fact
	// level is the entry's, read once.
	level     string
	haveLevel bool
}

// fact begins a fact found at offset at.
func (x *extraction) fact(k Kind, at int) *Fact {
	no, _ := x.e.LineAt(max(at-1, 0))
	if !x.haveLevel {
		x.level, x.haveLevel = levelOf(x.e), true
	}
	x.out = append(x.out, Fact{Kind: k, Level: x.level, File: x.file, Line: no + 1, Stamp: x.e.Stamp, Has: x.e.Has, Text: x.e.Clip(max(at-1, 0), 320)})
	return &x.out[len(x.out)-1]
}

// Extractor finds facts in log entries. Safe for concurrent use.
type Extractor struct {
	words   []word
	matcher *readers.Matcher
	dump    map[int]bool
}

// dumpWords announce thread dumps.
var dumpWords = []string{"java.lang.Thread.State:", "Fullthreaddump", "Java-leveldeadlock", "3XMTHREADINFO", "1LKDEADLOCK", "nid=0x"}

// carrierWords announce a line that the container runtime cut.
var carrierWords = []string{"Zstdoutp", "Zstderrp"}

// NewExtractor builds the automaton.
func NewExtractor() (*Extractor, error) {
	x := &Extractor{dump: map[int]bool{}}
	for _, group := range [][]word{retryWords(), serverWords(), zooWords(), faultWords(), ownWords(), settingWords()} {
		x.words = append(x.words, group...)
	}
	var texts []string
	for _, w := range x.words {
		texts = append(texts, w.text)
	}
	for _, w := range dumpWords {
		x.dump[len(texts)] = true
		texts = append(texts, w)
	}
	texts = append(texts, carrierWords...)
	var err error
	x.matcher, err = readers.NewMatcher(texts)
	return x, err
}

// Matcher is the automaton for a scanner.
func (x *Extractor) Matcher() *readers.Matcher { return x.matcher }

// DumpFlags are the words that announce thread dumps.
func (x *Extractor) DumpFlags() map[int]bool { return x.dump }

// maxFactsPerEntry bounds what one entry can state.
const maxFactsPerEntry = 400

// Extract reads the facts of an entry. Lines count from the entry's block.
func (x *Extractor) Extract(file string, e *readers.Entry, hits []readers.Hit) []Fact {
	ex := extraction{e: e, s: e.Squeezed, file: file}
	for _, h := range hits {
		if h.Word >= len(x.words) || len(ex.out) >= maxFactsPerEntry {
			continue
		}
		x.words[h.Word].read(&ex, h.End)
	}
	return ex.out
}

// simple makes a reader that states a fact without fields.
func simple(k Kind, class string) func(*extraction, int) {
	return func(x *extraction, at int) {
		f := x.fact(k, at)
		f.Class = class
		if srv, ok := findServer(window(x.s, at, 400), "on"); ok {
			f.Server = srv
		}
	}
}

// levelOf is the log level in the first line of an entry.
func levelOf(e *readers.Entry) string {
	if e.Lines() == 0 {
		return ""
	}
	_, t := e.LineAt(0)
	head := string(t[:min(len(t), 160)])
	bestAt, found := len(head), ""
	for _, l := range [...][2]string{{"FATAL", "FATAL"}, {"ERROR", "ERROR"}, {"WARN", "WARN"}, {"INFO", "INFO"}, {"DEBUG", "DEBUG"}, {"TRACE", "TRACE"}, {"ERRO[", "ERROR"}, {"DEBU[", "DEBUG"}, {"level=error", "ERROR"}, {"level=warn", "WARN"}, {"level=info", "INFO"}, {"level=debug", "DEBUG"}, {"SEVERE", "ERROR"}} {
		if i := strings.Index(head, l[0]); i >= 0 && i < bestAt {
			bestAt, found = i, l[1]
		}
	}
	return found
}

package hbase

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Attributes of cells and queries that HBase's AccessController and
// VisibilityController read (AccessControlConstants, VisibilityConstants), and
// that of replication (Mutation.CONSUMED_CLUSTER_IDS).
const (
	attrACL        = "acl"
	attrVisibility = "VISIBILITY"
	attrClusterIDs = "_cs.id"
)

// ACL says what users, or with a leading @ groups, may do: with the cells of a
// mutation, see [MutationOptions.ACL].
type ACL map[string]admin.Actions

// marshal gives HBase's UsersAndPermissions; every permission in it is Global,
// which for a cell means the cell.
func (a ACL) marshal() ([]byte, error) {
	p := &pb.UsersAndPermissions{}
	for _, user := range slices.Sorted(maps.Keys(a)) {
		one := &pb.Permission{Type: pb.Permission_Global.Enum(), GlobalPermission: &pb.GlobalPermission{}}
		for action := range pb.Permission_Action(len(pb.Permission_Action_name)) {
			if a[user]&(1<<action) != 0 {
				one.GlobalPermission.Action = append(one.GlobalPermission.Action, action)
			}
		}
		p.UserPermissions = append(p.UserPermissions, &pb.UsersAndPermissions_UserPermissions{User: []byte(user), Permissions: []*pb.Permission{one}})
	}
	return p.MarshalVT()
}

func checkACL(op string, a ACL) error {
	for user := range a {
		if user == "" || user == "@" {
			return invalid(op, "acl", "names no user")
		}
	}
	return nil
}

// security adds the attributes of a mutation that concern security and
// replication.
func (a *attributes) security(o *MutationOptions) error {
	if len(o.ACL) > 0 {
		b, err := o.ACL.marshal()
		if err != nil {
			return invalid("mutation", "acl", err.Error())
		}
		a.add(attrACL, b)
	}
	if o.Visibility != "" {
		b, err := (&pb.CellVisibility{Expression: &o.Visibility}).MarshalVT()
		if err != nil {
			return invalid("mutation", "visibility", err.Error())
		}
		a.add(attrVisibility, b)
	}
	if len(o.ClusterIDs) > 0 {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(o.ClusterIDs)))
		for _, id := range o.ClusterIDs {
			b = append(b, id[:]...)
		}
		a.add(attrClusterIDs, b)
	}
	return nil
}

// query adds the attributes of a Get or Scan that concern security.
func (a *attributes) query(acl ACL, authorizations []string) error {
	if len(acl) > 0 {
		b, err := acl.marshal()
		if err != nil {
			return invalid("query", "acl", err.Error())
		}
		a.add(attrACL, b)
	}
	if len(authorizations) > 0 {
		b, err := (&pb.Authorizations{Label: authorizations}).MarshalVT()
		if err != nil {
			return invalid("query", "authorizations", err.Error())
		}
		a.add(attrVisibility, b)
	}
	return nil
}

func checkQuerySecurity(op string, acl ACL, authorizations []string) error {
	for _, l := range authorizations {
		if l == "" {
			return invalid(op, "authorizations", "hold an empty label")
		}
	}
	return checkACL(op, acl)
}

func checkMutationSecurity(op string, o *MutationOptions) error {
	if o.Visibility != "" {
		if _, err := VisibilityLabels(o.Visibility); err != nil {
			return err
		}
	}
	return checkACL(op, o.ACL)
}

// QuoteLabel writes a visibility label so that it may stand in an expression
// whatever it holds (Java: CellVisibility.quote).
func QuoteLabel(label string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(label) + `"`
}

// maxVisibility bounds an expression's parentheses and negations.
const maxVisibility = 200

// VisibilityLabels checks a visibility expression and gives the labels it
// names, in order and each once. It is made of labels, & (and), | (or), !
// (not) and parentheses:
//
//	(SECRET | TOPSECRET) & !PROBATIONARY
//
// A label is letters, digits and _ - : . / or stands in double quotes, with a
// backslash before a quote or backslash. & and | bind alike, from the left, as
// in HBase's ExpressionParser: write parentheses.
func VisibilityLabels(expression string) ([]string, error) {
	p := &visibilityParser{text: expression}
	p.or(0)
	p.skip()
	if p.err == nil && p.at < len(p.text) {
		p.fail("has %q behind its end, at %d", p.text[p.at], p.at)
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.labels, nil
}

type visibilityParser struct {
	text   string
	at     int
	labels []string
	err    error
}

func (p *visibilityParser) fail(format string, a ...any) {
	if p.err == nil {
		p.err = invalid("visibility", "expression "+strconv.Quote(p.text), fmt.Sprintf(format, a...))
	}
}

func (p *visibilityParser) skip() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// peek is the next byte that is no space, 0 at the end.
func (p *visibilityParser) peek() byte {
	p.skip()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// or reads operands joined by & and |.
func (p *visibilityParser) or(depth int) {
	p.operand(depth)
	for p.err == nil {
		if c := p.peek(); c != '&' && c != '|' {
			return
		}
		p.at++
		p.operand(depth)
	}
}

func (p *visibilityParser) operand(depth int) {
	if depth > maxVisibility {
		p.fail("is nested deeper than %d", maxVisibility)
		return
	}
	switch c := p.peek(); {
	case p.err != nil:
	case c == 0:
		p.fail("ends where a label is due")
	case c == '!':
		p.at++
		// HBase's parser takes neither of these.
		if p.at < len(p.text) && (p.text[p.at] == '!' || p.text[p.at] == ' ') {
			p.fail("has a ! before %q, at %d", p.text[p.at], p.at)
			return
		}
		p.operand(depth + 1)
	case c == '(':
		p.at++
		p.or(depth + 1)
		if p.err == nil && p.peek() != ')' {
			p.fail("lacks a )")
			return
		}
		p.at++
	case c == '"':
		p.quoted()
	case labelByte(c):
		start := p.at
		for p.at < len(p.text) && labelByte(p.text[p.at]) {
			p.at++
		}
		p.label(p.text[start:p.at])
	default:
		p.fail("has %q at %d, where a label is due", c, p.at)
	}
}

func labelByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-:./", c) >= 0
}

func (p *visibilityParser) quoted() {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case '"':
			p.at++
			if b.Len() == 0 {
				p.fail("has an empty label")
			}
			p.label(b.String())
			return
		case '\\':
			if p.at++; p.at == len(p.text) || p.text[p.at] != '"' && p.text[p.at] != '\\' {
				p.fail(`has a \ before something else than " or \`)
				return
			}
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	p.fail("has a label whose quotes are not closed")
}

func (p *visibilityParser) label(l string) {
	if !slices.Contains(p.labels, l) {
		p.labels = append(p.labels, l)
	}
}

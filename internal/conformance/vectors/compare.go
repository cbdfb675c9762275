package vectors

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// remote writes a server's exception.
func remote(x *hbase.RemoteError) object {
	return object{"error": x.Class, "doNotRetry": x.DoNotRetry, "message": x.Message, "side": "server"}
}

// failure writes an error; one without a server's exception in it is the
// client's own.
func failure(err error) object {
	if x, ok := errors.AsType[*hbase.RemoteError](err); ok {
		o := remote(x)
		o["cause"] = err
		return o
	}
	return object{"error": err.Error(), "side": "client", "cause": err}
}

// sentinels are the errors of ours that stand for an exception which HBase's
// client makes by itself after asking something else.
func sentinel(class string) error {
	switch class[strings.LastIndexByte(class, '.')+1:] {
	case "TableNotFoundException":
		return hbase.ErrTableNotFound
	case "TableNotEnabledException":
		return hbase.ErrTableNotEnabled
	case "TableNotDisabledException":
		return hbase.ErrTableNotDisabled
	}
	return nil
}

// refused compares an error that HBase's client makes by itself. Ours has its
// own, and must not have sent the request either, or must have understood the
// server's answer as the same.
func refused(got object, want object) error {
	err, _ := got["cause"].(error)
	if s := sentinel(text(want, "error")); s != nil {
		if !errors.Is(err, s) {
			return fmt.Errorf("want %v", s)
		}
		return nil
	}
	if got["side"] != "client" {
		return errors.New("HBase's client refuses this by itself")
	}
	return nil
}

// same compares the answer to a step with what was recorded.
func (r *runner) same(s object, got any) error {
	want, ok := s["expect"].(object)
	if !ok {
		return nil // a fixture's steps
	}
	if want["side"] == "client" && want["error"] != nil {
		g, ok := got.(object)
		if !ok || g["error"] == nil {
			return fmt.Errorf("no error, want %s %s", want["error"], want["messageContains"])
		}
		return refused(g, want)
	}
	var w any = want
	if flag(s, "allowPartial") {
		// How a row is cut is the server's choice.
		w, got = glue(w), glue(got)
	}
	if !r.equal(got, w) {
		return errors.New("differs")
	}
	return nil
}

// glue joins the results of one row.
func glue(v any) any {
	o, ok := v.(object)
	if !ok || o["results"] == nil {
		return v
	}
	rowOf := func(cells []any) string {
		c, _ := cells[0].([]any)
		return plainText(c[0])
	}
	var out []any
	for _, x := range list(o, "results") {
		res, _ := x.(object)
		cells := list(res, "cells")
		if n := len(out); n > 0 && len(cells) > 0 {
			last := out[n-1].(object)
			if so := list(last, "cells"); len(so) > 0 && rowOf(so) == rowOf(cells) {
				last["cells"] = append(so, cells...)
				continue
			}
		}
		out = append(out, object{"cells": append([]any(nil), cells...)})
	}
	return object{"results": out}
}

// plainText gives bytes as they are, of an answer or of a file.
func plainText(v any) string {
	if b, ok := v.(raw); ok {
		return string(b)
	}
	return string(data(v))
}

func (r *runner) equal(got, want any) bool {
	switch w := want.(type) {
	case nil:
		return got == nil
	case object:
		g, ok := got.(object)
		if !ok {
			return false
		}
		if w["error"] != nil {
			return r.equalFailure(g, w)
		}
		return r.equalObject(g, w)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		if isCell(w) {
			return r.equalCell(g, w)
		}
		for i := range w {
			if !r.equal(g[i], w[i]) {
				return false
			}
		}
		return true
	case json.Number:
		return fmt.Sprint(got) == w.String()
	case string:
		if m, ok := got.(proto.Message); ok {
			return sameMessage(m, w)
		}
		if b, ok := got.(raw); ok {
			return string(b) == string(data(w))
		}
	}
	return reflect.DeepEqual(got, want)
}

func (r *runner) equalFailure(g, w object) bool {
	if w["side"] == "client" {
		return g["error"] != nil && refused(g, w) == nil
	}
	if g["error"] != w["error"] {
		return false
	}
	if d, ok := w["doNotRetry"]; ok && g["doNotRetry"] != d {
		return false
	}
	if x, ok := w["wire"].(object); ok && (g["error"] != x["class"] || g["doNotRetry"] != x["doNotRetry"]) {
		return false
	}
	return textMatches(text(g, "message"), text(w, "messageContains"))
}

func (r *runner) equalObject(g, w object) bool {
	for k, x := range w {
		switch k {
		case "filterWire", "filter", "failed":
			continue // compared where the filter is made; a count of the others
		case "result":
			// An increment or append that gives nothing back.
			if l, ok := x.([]any); ok && len(l) == 0 && g[k] == nil {
				continue
			}
		case "results":
			l, ok := g[k].([]any)
			wl, _ := x.([]any)
			if !ok || !r.equalResults(l, wl) {
				return false
			}
			continue
		}
		if !r.equal(g[k], x) {
			return false
		}
	}
	for k := range g {
		if _, ok := w[k]; !ok && g[k] != nil && k != "exists" && k != "message" && k != "cause" {
			return false
		}
	}
	return true
}

// equalResults compares results of a region action by index, others by
// position.
func (r *runner) equalResults(got, want []any) bool {
	if len(got) != len(want) {
		return false
	}
	byIndex := make(map[string]any)
	for _, g := range got {
		if o, ok := g.(object); ok && o["index"] != nil {
			byIndex[fmt.Sprint(o["index"])] = g
		}
	}
	for i, w := range want {
		g := got[i]
		if o, ok := w.(object); ok && o["index"] != nil {
			g = byIndex[fmt.Sprint(o["index"])]
		}
		if !r.equal(g, w) {
			return false
		}
	}
	return true
}

func isCell(l []any) bool {
	if len(l) != 6 {
		return false
	}
	switch l[4] {
	case "Put", "Delete", "DeleteColumn", "DeleteFamily", "DeleteFamilyVersion":
		return true
	}
	return false
}

func (r *runner) equalCell(g, w []any) bool {
	for _, i := range []int{0, 1, 2, 5} {
		if plainText(g[i]) != plainText(w[i]) {
			return false
		}
	}
	if g[4] != w[4] {
		return false
	}
	ts, ok := g[3].(int64)
	if w[3] == "now" {
		return ok && ts >= r.t0 && ts <= r.o.now()+5
	}
	return ok && ts == r.stamp(w[3])
}

// textMatches requires of a message what names something the user knows, and
// passes over what only Java would say.
func textMatches(got, want string) bool {
	for _, skip := range []string{"java.lang", "Message missing", "While parsing", "Unclosed character", "com.google", "hrows", "Illegal Capacity", "In case of"} {
		if strings.Contains(want, skip) {
			return true
		}
	}
	return strings.Contains(got, want)
}

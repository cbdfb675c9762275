package master

import (
	"errors"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// refuse makes an exception of a class that extends DoNotRetryIOException.
func refuse(class, format string, a ...any) error {
	return &cells.Exception{Class: class, Message: text(format, a), DoNotRetry: true}
}

// retriable makes an exception of a class that clients retry.
func retriable(class, format string, a ...any) error {
	return &cells.Exception{Class: class, Message: text(format, a)}
}

func text(format string, a []any) string {
	if len(a) == 0 {
		return format
	}
	return fmt.Sprintf(format, a...)
}

func unsupported(what string) error {
	return refuse(wire.ClassDoNotRetryIO, "%s", "unsupported: "+what)
}

func tableNotFound(n meta.TableName) error { return refuse(wire.ClassTableNotFound, "%s", n.String()) }

func tableNotEnabled(n meta.TableName) error {
	return refuse(wire.ClassTableNotEnabled, "%s", n.String())
}

func tableNotDisabled(n meta.TableName) error {
	return refuse(wire.ClassTableNotDisabled, "%s", n.String())
}

func unknownRegion(name string) error { return refuse(wire.ClassUnknownRegion, "%s", name) }

// asException gives any error the form in which it goes over the wire.
func asException(err error) *cells.Exception {
	var e *cells.Exception
	if errors.As(err, &e) {
		return e
	}
	return &cells.Exception{Class: wire.ClassIOException, Message: err.Error()}
}

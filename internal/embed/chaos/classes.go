package chaos

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Class is an exception that clients of HBase act on.
type Class struct {
	// Name is the full Java name.
	Name string
	// Message is what a rule says that has no words of its own.
	Message string
}

// Short is the class without its package.
func (c *Class) Short() string { return shortName(c.Name) }

func shortName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// Classes lists the exceptions by which HBase's clients choose what to do
// next. A rule may name them without their package.
func Classes() []Class {
	return []Class{
		{wire.ClassNotServingRegion, "region is not online (chaos)"},
		{wire.ClassRegionMoved, ""},
		{wire.ClassRegionOpening, "Region is opening (chaos)"},
		{wire.ClassWrongRegion, ""},
		{wire.ClassRegionTooBusy, "Over memstore limit"},
		{wire.ClassCallQueueTooBig, "Call queue is full, too many items queued ?"},
		{wire.ClassCallDropped, "Call dropped, waited too long in the queue"},
		{wire.ClassRpcThrottling, "number of requests exceeded"},
		{wire.ClassQuotaExceeded, ""},
		{wire.ClassRetryImmediately, ""},
		{wire.ClassMultiActionResultTooLarge, "Max size exceeded"},
		{wire.ClassRequestTooBig, ""},
		{wire.ClassServerNotRunningYet, "Server is not running yet"},
		{wire.ClassPleaseHold, "Master is initializing"},
		{wire.ClassMasterNotRunning, ""},
		{wire.ClassMasterStopped, ""},
		{wire.ClassRegionServerStopped, "Server is stopping"},
		{wire.ClassRegionServerAborted, "Server is aborting"},
		{wire.ClassNotAllMetaRegionsOnline, ""},
		{wire.ClassUnknownScanner, ""},
		{wire.ClassScannerReset, "Scanner is closed on the server-side"},
		{wire.ClassOutOfOrderScannerNext, ""},
		{wire.ClassLease, ""},
		{wire.ClassNoSuchColumnFamily, ""},
		{wire.ClassTimeoutIO, ""},
		{wire.ClassFailedSanityCheck, ""},
		{wire.ClassUnknownProtocol, ""},
		{wire.ClassDoNotRetryIO, ""},
		{wire.ClassTableNotFound, ""},
		{wire.ClassTableNotEnabled, ""},
		{wire.ClassTableNotDisabled, ""},
		{wire.ClassTableExists, ""},
		{wire.ClassNamespaceNotFound, ""},
		{wire.ClassUnknownRegion, ""},
		{wire.ClassAccessDenied, ""},
		{wire.ClassIOException, ""},
	}
}

// remote makes the exception as it goes over the wire: package, flags and a
// text in the form clients parse follow from the class.
func (e *Exception) remote() *wire.RemoteError {
	class, message := e.Class, e.Message
	all := Classes()
	if i := slices.IndexFunc(all, func(c Class) bool { return c.Name == class || c.Short() == class }); i >= 0 {
		class = all[i].Name
		if message == "" {
			message = all[i].Message
		}
	}
	if message == "" {
		message = "injected by a chaos rule"
	}
	var r *wire.RemoteError
	switch {
	case class == wire.ClassRpcThrottling && !strings.Contains(message, " - wait "):
		wait := e.Wait
		if wait <= 0 {
			wait = 100 * time.Millisecond
		}
		r = wire.NewThrottling(message, wait)
	case class == wire.ClassRegionMoved && e.Host != "":
		r = wire.NewRegionMoved(wire.MovedTo{Host: e.Host, Port: e.Port, StartCode: e.StartCode, SeqNum: e.SeqNum})
	default:
		r = wire.NewRemoteError(class, message)
	}
	r.DoNotRetry = r.DoNotRetry || e.DoNotRetry
	r.Overloaded = r.Overloaded || e.Overloaded
	return r
}

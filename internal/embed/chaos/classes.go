package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Class is an exception that clients of HBase act on.
type Class struct {
	// Name is the full Java name.
	Name string
	// DoNotRetry is what HBase's server says of it in the response header.
	DoNotRetry bool
	// Overloaded: the server says it is overloaded.
	Overloaded bool
	// Message is a text of HBase's, "" where any will do.
	Message string
}

// Short is the class without its package.
func (c *Class) Short() string { return shortName(c.Name) }

func shortName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

const hbase = "org.apache.hadoop.hbase."

// Classes lists the exceptions by which HBase's clients choose what to do
// next.
func Classes() []Class {
	return []Class{
		{hbase + "NotServingRegionException", false, false, ""},
		{hbase + "exceptions.RegionMovedException", false, false, ""},
		{hbase + "exceptions.RegionOpeningException", false, false, ""},
		{hbase + "regionserver.WrongRegionException", false, false, ""},
		{hbase + "RegionTooBusyException", false, false, "Over memstore limit"},
		{hbase + "CallQueueTooBigException", false, true, "Call queue is full, too many items queued ?"},
		{hbase + "CallDroppedException", false, true, "Call dropped, waited too long in the queue"},
		{hbase + "quotas.RpcThrottlingException", false, false, "number of requests exceeded - wait "},
		{hbase + "quotas.QuotaExceededException", true, false, ""},
		{hbase + "RetryImmediatelyException", false, false, ""},
		{hbase + "MultiActionResultTooLarge", false, false, "Max size exceeded"},
		{hbase + "exceptions.RequestTooBigException", true, false, ""},
		{hbase + "ipc.ServerNotRunningYetException", false, false, "Server is not running yet"},
		{hbase + "PleaseHoldException", false, false, "Master is initializing"},
		{hbase + "MasterNotRunningException", false, false, ""},
		{hbase + "exceptions.MasterStoppedException", true, false, ""},
		{hbase + "regionserver.RegionServerStoppedException", false, false, ""},
		{hbase + "regionserver.RegionServerAbortedException", false, false, ""},
		{hbase + "NotAllMetaRegionsOnlineException", true, false, ""},
		{hbase + "UnknownScannerException", true, false, ""},
		{hbase + "exceptions.ScannerResetException", true, false, "Scanner is closed on the server-side"},
		{hbase + "exceptions.OutOfOrderScannerNextException", true, false, ""},
		{hbase + "regionserver.LeaseException", true, false, ""},
		{hbase + "regionserver.NoSuchColumnFamilyException", true, false, ""},
		{hbase + "exceptions.TimeoutIOException", false, false, ""},
		{hbase + "exceptions.FailedSanityCheckException", true, false, ""},
		{hbase + "exceptions.UnknownProtocolException", true, false, ""},
		{hbase + "DoNotRetryIOException", true, false, ""},
		{hbase + "TableNotFoundException", true, false, ""},
		{hbase + "TableNotEnabledException", true, false, ""},
		{hbase + "TableNotDisabledException", true, false, ""},
		{hbase + "TableExistsException", true, false, ""},
		{hbase + "NamespaceNotFoundException", true, false, ""},
		{hbase + "UnknownRegionException", true, false, ""},
		{hbase + "security.AccessDeniedException", true, false, ""},
		{"java.io.IOException", false, false, ""},
	}
}

// complete fills in what the class tells: package, flags, and a message in
// the form clients parse.
func (e *Exception) complete() {
	all := Classes()
	i := slices.IndexFunc(all, func(c Class) bool { return c.Name == e.Class || c.Short() == e.Class })
	if i >= 0 {
		c := &all[i]
		e.Class = c.Name
		e.DoNotRetry = e.DoNotRetry || c.DoNotRetry
		e.Overloaded = e.Overloaded || c.Overloaded
		if e.Message == "" {
			e.Message = c.Message
		}
	}
	switch shortName(e.Class) {
	case "RpcThrottlingException":
		if e.Wait <= 0 {
			e.Wait = 100 * time.Millisecond
		}
		if !strings.Contains(e.Message, "wait ") {
			e.Message += " - wait "
		}
		if strings.HasSuffix(e.Message, "wait ") {
			e.Message += WaitText(e.Wait)
		}
	case "RegionMovedException":
		if e.Message == "" {
			e.Message = fmt.Sprintf("Region moved to: hostname=%s port=%d startCode=%d. As of locationSeqNum=%d.", e.Host, e.Port, e.StartCode, e.SeqNum)
		}
	}
	if e.Message == "" {
		e.Message = "injected by a chaos rule"
	}
}

// WaitText prints a duration as RpcThrottlingException does and clients parse:
// "40ms", "3sec, 40ms", "1hrs, 2mins, 3sec". From a second on, the seconds are
// always told.
func WaitText(d time.Duration) string {
	ms := max(d.Milliseconds(), 0)
	if ms < 1000 {
		return strconv.FormatInt(ms, 10) + "ms"
	}
	var b strings.Builder
	if h := ms / 3600_000; h > 0 {
		fmt.Fprintf(&b, "%dhrs, ", h)
	}
	if m := ms / 60_000 % 60; m > 0 {
		fmt.Fprintf(&b, "%dmins, ", m)
	}
	fmt.Fprintf(&b, "%dsec", ms/1000%60)
	if ms %= 1000; ms > 0 {
		fmt.Fprintf(&b, ", %dms", ms)
	}
	return b.String()
}

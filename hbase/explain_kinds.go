package hbase

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
	"github.com/holdfast-hbase/holdfast/zk"
)

// kind is a class of causes, with what an operator does about it.
type kind struct {
	name     string
	happened string
	next     []string
}

func isUnreadable(err error) bool {
	_, ok := errors.AsType[*fault.Unreadable](err)
	return ok
}

// kindOf finds the kind of an error whose decisive cause is given. What the
// client says of itself comes first, then the way to the cluster, then the
// server.
func kindOf(err, cause error) kind {
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, route.ErrClosed), errors.Is(err, ErrScannerClosed), errors.Is(err, ErrMutatorClosed):
		return kind{"client closed", "the client, the scanner or the mutator was closed", []string{
			"keep the client open until its last call has returned; a process needs one client, not one per call",
		}}
	case isUnreadable(err):
		return kind{"unreadable answer", "the server's answer came and could not be read", []string{
			"this is a defect of the client or of the server: keep the error's text and the versions of both",
		}}
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return kind{"invalid request", "the request was refused before anything was sent: " + invalid.Object + ": " + invalid.Reason, []string{
			"correct the request",
		}}
	}
	if address, ok := errors.AsType[*registry.AddressError](err); ok {
		return kind{"address", "the cluster's address or its hbase-site.xml cannot be used: " + strings.Join(address.Problems, "; "), []string{
			"`holdfast config ADDRESS` shows what is read from it",
		}}
	}
	if errors.Is(err, session.ErrUnsupported) {
		return kind{"unsupported", "the configuration asks for something this client does not have: " + firstLine(err), []string{
			"see docs/configuration.md for what is supported",
		}}
	}
	if cause != nil {
		if k, ok := wayKind(cause); ok {
			return k
		}
		if k, ok := transportKind(cause); ok {
			return k
		}
	}
	if errors.Is(err, context.Canceled) {
		return kind{"canceled", "the caller's context was canceled", []string{"look for who cancels it"}}
	}
	if timeIsUp(err) {
		return noTime()
	}
	return kind{"other", firstLine(err), nil}
}

func noTime() kind {
	return kind{"no time", "the call's time was up", []string{
		"give the call more time: its context's deadline or operation-timeout",
		"`holdfast retry trace` shows what a call spends its time on",
	}}
}

// wayKind is about finding the region: registry, hbase:meta, the table.
func wayKind(err error) (kind, bool) {
	switch {
	case errors.Is(err, ErrTableNotFound), said(err, wire.ClassTableNotFound):
		return kind{"table missing", "there is no such table", []string{
			"check the name and the namespace: `list` in `holdfast shell`",
			"check that the address is that of the right cluster: `holdfast config ADDRESS`",
		}}, true
	case errors.Is(err, ErrTableNotEnabled), said(err, wire.ClassTableNotEnabled):
		return kind{"table disabled", "the table is disabled, so its regions are closed", []string{
			"`enable 'TABLE'` in a shell, or find out who disabled it and why (an ALTER, a snapshot being restored)",
		}}, true
	}
	if e, ok := errors.AsType[*registry.ZNodeError](err); ok {
		next := []string{"compare zookeeper.znode.parent with the cluster's hbase-site.xml"}
		if len(e.Suggestions) > 0 {
			next = append([]string{"this ensemble has " + strings.Join(e.Suggestions, ", ")}, next...)
		}
		return kind{"znode parent", "ZooKeeper is there, but HBase's znode is not what it should be: " + e.Problem, next}, true
	}
	if e, ok := errors.AsType[*registry.EnsembleError](err); ok {
		for _, a := range e.Attempts {
			if a.Outcome == zk.OutcomeNotZooKeeper {
				return kind{"not ZooKeeper", "what answers at " + a.Host + " is not ZooKeeper", []string{
					"check host and port of the quorum (2181 is ZooKeeper's default; 16000 and 16020 are HBase's)",
				}}, true
			}
		}
		return zooKeeperKind(firstLine(err)), true
	}
	if op, ok := errors.AsType[*zk.OpError](err); ok && !op.Answered {
		return zooKeeperKind(firstLine(op)), true
	}
	if e, ok := errors.AsType[*registry.NotYetError](err); ok {
		return kind{"cluster starting", "the cluster is there but has no " + e.What + " yet: " + e.State, []string{
			"is a master running? Its log tells what it waits for",
			"a cluster that starts needs a minute or two before hbase:meta is assigned",
		}}, true
	}
	if e, ok := errors.AsType[*registry.EndpointsError](err); ok {
		if _, not := errors.AsType[*rpc.NotHBaseError](err); not {
			return kind{}, false // the transport knows more
		}
		return kind{"registry unreachable", fmt.Sprintf("none of %d endpoints told where the %s is", len(e.Endpoints), e.What), []string{
			"check that these addresses are masters or region servers of the cluster, and their ports (16000, 16020)",
			"HBase before 2.5 has no RPC registry on region servers: use hbase://ZOOKEEPER instead",
		}}, true
	}
	if e, ok := errors.AsType[*session.RegistryError](err); ok && errors.Is(e.Err, context.DeadlineExceeded) {
		return kind{"registry unreachable", "the registry " + e.Registry + " did not tell where the " + e.What + " is", []string{
			"check that ZooKeeper (or the masters) can be reached from this machine: `holdfast doctor live ADDRESS`",
		}}, true
	}
	if e, ok := errors.AsType[*route.LocateError](err); ok {
		if errors.Is(err, route.ErrRegionUnavailable) {
			return transitKind(), true
		}
		if e.Table == meta.MetaTable || e.Failures > 0 || e.Last != nil {
			if k, ok := transportKind(e.Last); ok && e.Last != nil {
				k.happened = "hbase:meta could not be read: " + k.happened
				k.name = "meta unreachable"
				return k, true
			}
			return kind{"meta unreachable", "hbase:meta could not be read, so the row's region is not known", []string{
				"`holdfast route explain ADDRESS TABLE ROW` shows where hbase:meta is said to be and what it answers",
				"is the region server that holds hbase:meta alive? The master's page names it",
			}}, true
		}
		if timeIsUp(err) {
			return noTime(), true
		}
	}
	if errors.Is(err, route.ErrRegionUnavailable) {
		return transitKind(), true
	}
	return kind{}, false
}

// said says whether the error is a server's exception of the class.
func said(err error, class string) bool {
	e, ok := errors.AsType[*wire.RemoteError](err)
	return ok && e.Class == class
}

func zooKeeperKind(text string) kind {
	return kind{"ZooKeeper unreachable", "no ZooKeeper server gave this client a session: " + text, []string{
		"is ZooKeeper running at these addresses, and does a firewall let this machine through? `echo ruok | nc HOST 2181`",
		"a server that has lost its majority, or has reached maxClientCnxns, refuses sessions: its log says so",
	}}
}

func transitKind() kind {
	return kind{"region in transition", "the row's region is between two servers and nobody serves it", []string{
		"wait: a move or a split takes about a second, the recovery of a dead server up to a few minutes (its session timeout, then its logs)",
		"if it lasts: look for the region among the regions in transition on the master's page, and for its procedure with list_procedures",
		"give calls that must survive this an operation-timeout of a minute",
	}}
}

// transportKind is about the server and the way to it.
func transportKind(err error) (kind, bool) {
	if err == nil {
		return kind{}, false
	}
	if e, ok := errors.AsType[*rpc.NotHBaseError](err); ok {
		return kind{"not HBase", "what answers at " + e.Addr + " is not HBase's RPC: it looks like " + e.Saw, []string{
			"check the port: 16000 master, 16020 region server, 2181 ZooKeeper, 16010 and 16030 are web pages",
			"a port that is open but served by TLS or a proxy looks like this as well",
		}}, true
	}
	if e, ok := errors.AsType[*health.DownError](err); ok {
		if _, silent := errors.AsType[*session.SilentError](err); silent {
			return silentKind("region server " + e.Server.String()), true
		}
		return downKind("server " + e.Server.String()), true
	}
	if e, ok := errors.AsType[*session.SilentError](err); ok {
		return silentKind("region server " + e.Server.String()), true
	}
	if e, ok := errors.AsType[*health.BusyError](err); ok {
		return kind{"own queue full", fmt.Sprintf("%d calls of this client wait for %s already", e.Queue, e.Server), []string{
			"send less at a time, or slow down when this error comes: the server does not keep up",
			"look at the server's call queue and garbage collection; spread hot rows over more regions",
		}}, true
	}
	if e, ok := errors.AsType[*wire.RemoteError](err); ok {
		return remoteKind(e), true
	}
	if e, ok := errors.AsType[*rpc.DialError](err); ok {
		return dialKind(e), true
	}
	if e, ok := errors.AsType[*wire.TooLargeError](err); ok {
		return kind{"too large", "a message was larger than this client takes: " + e.Error(), tooLargeNext()}, true
	}
	if e, ok := errors.AsType[*rpc.ConnError](err); ok {
		return kind{"connection broke", "the connection to " + e.Addr + " ended under the call", []string{
			"did the server restart or abort? Its log's last lines say why",
			"a server closes a connection that sends more than hbase.ipc.max.request.size, or speaks another protocol (TLS, Kerberos)",
		}}, true
	}
	if e, ok := errors.AsType[*session.NoReplicaError](err); ok {
		return kind{"no such replica", e.Error(), []string{"the table's REGION_REPLICATION decides how many replicas there are"}}, true
	}
	if timeIsUp(err) {
		return kind{"no answer in time", "the server took the request and gave no answer in time", []string{
			"is the server slow (garbage collection, disk, a filter that reads much) or is the time too short? Compare rpc-timeout with the time such calls take",
			"`holdfast retry trace` shows every attempt of one call with its time",
		}}, true
	}
	return kind{}, false
}

func downKind(who string) kind {
	return kind{"server down", who + " is down", []string{
		"is the process alive? The master's page lists the dead servers",
		"its regions are served again once the master has noticed and replayed its logs: operations with enough time wait for that by themselves",
	}}
}

func silentKind(who string) kind {
	return kind{"server frozen", who + " keeps its connections open and answers nothing, not even a ping", []string{
		"a long garbage collection, a stopped process (SIGSTOP), a full disk or a lost machine look like this: see the server's log and its JVM pauses",
		"calls to other servers are not affected; the regions move when the server's ZooKeeper session ends",
	}}
}

func dialKind(e *rpc.DialError) kind {
	if dns, ok := errors.AsType[*net.DNSError](e.Cause); ok {
		return kind{"name unknown", "the name " + dns.Name + " could not be resolved", []string{
			"HBase names its servers by host name, and clients must be able to resolve them: add them to DNS or /etc/hosts of this machine",
			"in containers: set hbase.regionserver.hostname and hbase.master.hostname to names that clients know",
		}}
	}
	switch {
	case errors.Is(e.Cause, syscall.ECONNREFUSED):
		return kind{"server down", "nothing listens at " + e.Addr + " (connection refused)", []string{
			"is the process alive, and is this its port?",
			"its regions are served again once the master has noticed and replayed its logs: operations with enough time wait for that by themselves",
		}}
	case errors.Is(e.Cause, rpc.ErrConnectTimeout), timeIsUp(e.Cause):
		return kind{"server unreachable", "no connection to " + e.Addr + " came about in time", []string{
			"a firewall that drops packets looks like this, and so does a machine that is off: try `nc -vz` to that address",
		}}
	}
	return kind{"cannot connect", "no connection to " + e.Addr + " came about (" + e.Phase.String() + ")", []string{
		"try `nc -vz` to that address from this machine",
	}}
}

func tooLargeNext() []string {
	return []string{
		"cut the row, the batch or the answer: Scan.Batch and AllowPartial for wide rows, batch-bytes for writes",
		"the limits are hbase.client.keyvalue.maxsize, hbase.ipc.max.request.size, hbase.table.max.rowsize",
	}
}

// remoteKind is about what the server said.
func remoteKind(e *wire.RemoteError) kind {
	short := e.Class[strings.LastIndexByte(e.Class, '.')+1:]
	said := "the server answered " + short
	if m := firstLine(errors.New(e.Message)); m != "" {
		said += ": " + m
	}
	switch e.Class {
	case wire.ClassNotServingRegion, wire.ClassRegionMoved, wire.ClassRegionOpening, wire.ClassRegionOffline, wire.ClassWrongRegion, wire.ClassNoServerForRegion:
		k := transitKind()
		k.happened = said
		return k
	case wire.ClassRegionTooBusy:
		return kind{"region overloaded", said, []string{
			"the region's memstore is full or a row lock is held for long: writes to one region come faster than it flushes",
			"split the region or spread the keys; look at flush and compaction queues",
		}}
	case wire.ClassCallQueueTooBig, wire.ClassCallDropped, wire.ClassServerTooBusy:
		return kind{"server overloaded", said, []string{
			"the server sheds load: its call queue is full or calls waited too long in it",
			"look at its handlers, its garbage collection and at who sends so much; more region servers or fewer requests",
		}}
	case wire.ClassRpcThrottling, wire.ClassThrottling:
		next := []string{"a quota of the cluster limits this user, table or namespace: list_quotas in a shell"}
		if e.ThrottleWait > 0 {
			next = append(next, "the server asks to wait "+shortly(e.ThrottleWait))
		}
		return kind{"quota", said, next}
	case wire.ClassQuotaExceeded, wire.ClassSpaceLimiting:
		return kind{"space quota", said, []string{"the table or namespace has used up its space: list_quotas and list_snapshot_sizes in a shell, then delete, or raise the quota"}}
	case wire.ClassAccessDenied, wire.ClassBadAuth, wire.ClassSecurityNotEnabled:
		return kind{"access denied", said, []string{"user_permission 'TABLE' in a shell shows who may what; `holdfast config` shows which user the calls have"}}
	case wire.ClassNoSuchColumnFamily, wire.ClassInvalidFamilyOperation:
		return kind{"family missing", said, []string{"describe 'TABLE' in a shell lists the column families"}}
	case wire.ClassTableExists, wire.ClassNamespaceExist, wire.ClassTableNotDisabled, wire.ClassNamespaceNotFound, wire.ClassConstraint,
		wire.ClassMergeRegion, wire.ClassUnknownRegion, wire.ClassConcurrentTableModification, wire.ClassFailedSanityCheck:
		return kind{"state of the cluster", said, []string{"the request does not fit what is there: describe or list it in a shell"}}
	case wire.ClassClientRowTooBig, wire.ClassRowTooBig, wire.ClassRequestTooBig:
		return kind{"too large", said, tooLargeNext()}
	case wire.ClassRegionServerStopped, wire.ClassRegionServerAborted, wire.ClassServerNotRunningYet:
		return downKind("the server, which is stopping or starting (" + short + "),")
	case wire.ClassPleaseHold, wire.ClassMasterNotRunning, wire.ClassMasterStopped:
		return kind{"master not ready", said, []string{"the master is starting, or another is about to take over: its log tells what it waits for"}}
	case wire.ClassUnknownScanner, wire.ClassLease, wire.ClassScannerReset, wire.ClassOutOfOrderScannerNext:
		return kind{"scanner lost", said, []string{"scans go on by themselves; if it lasts, the region server forgets scanners faster than they are read: compare its lease with scanner-timeout"}}
	case wire.ClassUnknownProtocol:
		return kind{"coprocessor missing", said, []string{"the table has no such coprocessor: describe 'TABLE' shows those it has"}}
	case wire.ClassTimeoutIO, wire.ClassCallTimeout, "java.net.SocketTimeoutException", "java.util.concurrent.TimeoutException", "java.io.InterruptedIOException":
		return kind{"slow server", said, []string{"the server itself waited in vain: for its log on HDFS, a row lock, or another server; its log says for what"}}
	case wire.ClassUnsupportedOperation, wire.ClassUnknownService, wire.ClassUnsupportedCellCodec, wire.ClassUnsupportedCompression, wire.ClassWrongVersion:
		return kind{"not supported by the server", said, []string{"the server is too old for this, or is not configured for it"}}
	}
	if e.DoNotRetry {
		return kind{"refused by the server", said, []string{"the server says that trying again will not help: its log has the whole exception"}}
	}
	return kind{"server error", said, []string{"the server's log has the whole exception at this time"}}
}

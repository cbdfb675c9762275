package jute

import "fmt"

// OpCode is the type field of a request header.
type OpCode int32

// Operation codes of the client protocol.
const (
	OpNotify               OpCode = 0
	OpCreate               OpCode = 1
	OpDelete               OpCode = 2
	OpExists               OpCode = 3
	OpGetData              OpCode = 4
	OpSetData              OpCode = 5
	OpGetACL               OpCode = 6
	OpSetACL               OpCode = 7
	OpGetChildren          OpCode = 8
	OpSync                 OpCode = 9
	OpPing                 OpCode = 11
	OpGetChildren2         OpCode = 12
	OpCheck                OpCode = 13
	OpMulti                OpCode = 14
	OpCreate2              OpCode = 15
	OpReconfig             OpCode = 16
	OpCheckWatches         OpCode = 17
	OpRemoveWatches        OpCode = 18
	OpCreateContainer      OpCode = 19
	OpDeleteContainer      OpCode = 20
	OpCreateTTL            OpCode = 21
	OpMultiRead            OpCode = 22
	OpAuth                 OpCode = 100
	OpSetWatches           OpCode = 101
	OpSASL                 OpCode = 102
	OpGetEphemerals        OpCode = 103
	OpGetAllChildrenNumber OpCode = 104
	OpSetWatches2          OpCode = 105
	OpAddWatch             OpCode = 106
	OpWhoAmI               OpCode = 107
	OpCreateSession        OpCode = -10
	OpCloseSession         OpCode = -11
	OpError                OpCode = -1
)

// String names the operation as ZooKeeper's own tools do.
func (o OpCode) String() string {
	switch o {
	case OpNotify:
		return "notification"
	case OpCreate:
		return "create"
	case OpDelete:
		return "delete"
	case OpExists:
		return "exists"
	case OpGetData:
		return "getData"
	case OpSetData:
		return "setData"
	case OpGetACL:
		return "getACL"
	case OpSetACL:
		return "setACL"
	case OpGetChildren:
		return "getChildren"
	case OpSync:
		return "sync"
	case OpPing:
		return "ping"
	case OpGetChildren2:
		return "getChildren2"
	case OpCheck:
		return "check"
	case OpMulti:
		return "multi"
	case OpCreate2:
		return "create2"
	case OpReconfig:
		return "reconfig"
	case OpCheckWatches:
		return "checkWatches"
	case OpRemoveWatches:
		return "removeWatches"
	case OpCreateContainer:
		return "createContainer"
	case OpDeleteContainer:
		return "deleteContainer"
	case OpCreateTTL:
		return "createTTL"
	case OpMultiRead:
		return "multiRead"
	case OpAuth:
		return "auth"
	case OpSetWatches:
		return "setWatches"
	case OpSASL:
		return "sasl"
	case OpGetEphemerals:
		return "getEphemerals"
	case OpGetAllChildrenNumber:
		return "getAllChildrenNumber"
	case OpSetWatches2:
		return "setWatches2"
	case OpAddWatch:
		return "addWatch"
	case OpWhoAmI:
		return "whoAmI"
	case OpCreateSession:
		return "createSession"
	case OpCloseSession:
		return "closeSession"
	case OpError:
		return "error"
	}
	return fmt.Sprintf("op(%d)", int32(o))
}

// Reserved transaction ids. Ordinary requests count from 1 and stay positive.
const (
	XidNotify     int32 = -1
	XidPing       int32 = -2
	XidAuth       int32 = -4
	XidSetWatches int32 = -8
)

// Code is a protocol error code; 0 is success. It implements error, so that a non-zero Code can be returned and
// compared with errors.Is as it is.
type Code int32

// Error codes.
const (
	OK                          Code = 0
	ErrSystem                   Code = -1
	ErrRuntimeInconsistency     Code = -2 // also: an operation of a failed multi that was not reached
	ErrDataInconsistency        Code = -3
	ErrConnectionLoss           Code = -4
	ErrMarshalling              Code = -5
	ErrUnimplemented            Code = -6
	ErrOperationTimeout         Code = -7
	ErrBadArguments             Code = -8
	ErrUnknownSession           Code = -12
	ErrNewConfigNoQuorum        Code = -13
	ErrReconfigInProgress       Code = -14
	ErrAPI                      Code = -100
	ErrNoNode                   Code = -101
	ErrNoAuth                   Code = -102
	ErrBadVersion               Code = -103
	ErrNoChildrenForEphemerals  Code = -108
	ErrNodeExists               Code = -110
	ErrNotEmpty                 Code = -111
	ErrSessionExpired           Code = -112
	ErrInvalidCallback          Code = -113
	ErrInvalidACL               Code = -114
	ErrAuthFailed               Code = -115
	ErrClosing                  Code = -116
	ErrSessionMoved             Code = -118
	ErrNotReadOnly              Code = -119
	ErrEphemeralOnLocalSession  Code = -120
	ErrNoWatcher                Code = -121
	ErrRequestTimeout           Code = -122
	ErrReconfigDisabled         Code = -123
	ErrSessionClosedRequireSASL Code = -124
	ErrQuotaExceeded            Code = -125
	ErrThrottled                Code = -127
)

// Error names the code and gives its number, which is what the other clients' logs show.
func (c Code) Error() string { return fmt.Sprintf("%s (%d)", c.text(), int32(c)) }

func (c Code) text() string {
	switch c {
	case OK:
		return "ok"
	case ErrSystem:
		return "system error"
	case ErrRuntimeInconsistency:
		return "runtime inconsistency"
	case ErrDataInconsistency:
		return "data inconsistency"
	case ErrConnectionLoss:
		return "connection loss"
	case ErrMarshalling:
		return "marshalling error"
	case ErrUnimplemented:
		return "unimplemented by the server"
	case ErrOperationTimeout:
		return "operation timeout"
	case ErrBadArguments:
		return "bad arguments"
	case ErrUnknownSession:
		return "unknown session"
	case ErrNewConfigNoQuorum:
		return "no quorum of the new configuration"
	case ErrReconfigInProgress:
		return "reconfiguration in progress"
	case ErrAPI:
		return "API error"
	case ErrNoNode:
		return "node does not exist"
	case ErrNoAuth:
		return "not authorised"
	case ErrBadVersion:
		return "version does not match"
	case ErrNoChildrenForEphemerals:
		return "ephemeral nodes cannot have children"
	case ErrNodeExists:
		return "node exists"
	case ErrNotEmpty:
		return "node has children"
	case ErrSessionExpired:
		return "session expired"
	case ErrInvalidCallback:
		return "invalid callback"
	case ErrInvalidACL:
		return "invalid ACL"
	case ErrAuthFailed:
		return "authentication failed"
	case ErrClosing:
		return "closing"
	case ErrSessionMoved:
		return "session moved to another server"
	case ErrNotReadOnly:
		return "write on a read-only server"
	case ErrEphemeralOnLocalSession:
		return "ephemeral node on a local session"
	case ErrNoWatcher:
		return "no such watcher"
	case ErrRequestTimeout:
		return "request timeout"
	case ErrReconfigDisabled:
		return "reconfiguration disabled"
	case ErrSessionClosedRequireSASL:
		return "session closed: SASL authentication required"
	case ErrQuotaExceeded:
		return "quota exceeded"
	case ErrThrottled:
		return "request throttled"
	}
	return "error"
}

// EventType is the type field of a watch event.
type EventType int32

// Event types. EventNone is never sent by a server to a watch; it marks a change of the session itself.
const (
	EventNone                   EventType = -1
	EventCreated                EventType = 1
	EventDeleted                EventType = 2
	EventDataChanged            EventType = 3
	EventChildrenChanged        EventType = 4
	EventDataWatchRemoved       EventType = 5
	EventChildWatchRemoved      EventType = 6
	EventPersistentWatchRemoved EventType = 7
)

// String names the event type.
func (t EventType) String() string {
	switch t {
	case EventNone:
		return "none"
	case EventCreated:
		return "created"
	case EventDeleted:
		return "deleted"
	case EventDataChanged:
		return "data changed"
	case EventChildrenChanged:
		return "children changed"
	case EventDataWatchRemoved:
		return "data watch removed"
	case EventChildWatchRemoved:
		return "child watch removed"
	case EventPersistentWatchRemoved:
		return "persistent watch removed"
	}
	return fmt.Sprintf("event(%d)", int32(t))
}

// StateSyncConnected is the state field of every event a serving ZooKeeper sends.
const (
	StateSyncConnected     int32 = 3
	StateConnectedReadOnly int32 = 5
)

// Create flags.
const (
	FlagPersistent              int32 = 0
	FlagEphemeral               int32 = 1
	FlagSequential              int32 = 2
	FlagEphemeralSequential     int32 = 3
	FlagContainer               int32 = 4
	FlagTTL                     int32 = 5
	FlagPersistentSequentialTTL int32 = 6
)

// Permissions of an ACL entry.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// Modes of addWatch.
const (
	WatchPersistent          int32 = 0
	WatchPersistentRecursive int32 = 1
)

// Watcher types of checkWatches and removeWatches.
const (
	WatcherChildren   int32 = 1
	WatcherData       int32 = 2
	WatcherAny        int32 = 3
	WatcherPersistent int32 = 4
	WatcherRecursive  int32 = 5
)

package checks

// String names the kind for timelines.
func (k Kind) String() string {
	switch k {
	case CallTimedOut:
		return "call gave up"
	case Progress, AsyncBatch:
		return "retrying"
	case Exhausted:
		return "retries exhausted"
	case Attempt:
		return "attempt"
	case NotServing, WrongRegion:
		return "region not served"
	case Moved:
		return "region moved"
	case Opening:
		return "region opening"
	case Unresolved:
		return "name unresolved"
	case Refused:
		return "refused"
	case FailedServer:
		return "failed-server list"
	case NoRoute, ConnectTimeout:
		return "unreachable"
	case RPCTimeout:
		return "call timed out"
	case QueueFull:
		return "queue full"
	case MemstoreFull, RowLockBusy:
		return "region busy"
	case ScannerUnknown, ScannerGap, ScannerMissing, ScannerOrder, ScannerClosed:
		return "scanner"
	case LookupLock:
		return "lookup lock"
	case MasterBusy, MasterGone, MasterReady:
		return "master"
	case Stuck:
		return "region stuck"
	case ParentMissing, NoNode:
		return "znode missing"
	case ZKSilent:
		return "zk silent"
	case ZKExpired, ZKExpiredClient, ZKInvalid:
		return "zk session expired"
	case ZKRenew, ZKOpening:
		return "zk reconnect"
	case ZKEstablished, ZKGranted:
		return "zk session"
	case ZKConnError, ZKLoss, ZKTooMany:
		return "zk connection"
	case ZKClosed:
		return "zk closed"
	case Pause:
		return "pause"
	case KerberosNoTGT, KerberosRelogin, KerberosPrincipal, KerberosClock:
		return "kerberos"
	case CoprocessorFault:
		return "coprocessor"
	case ClientGone:
		return "client gone"
	case SlowResponse:
		return "slow response"
	case YouAreDead, Abort:
		return "abort"
	case OwnError:
		return "holdfast client"
	}
	return "event"
}

package wire

import "strings"

// Names of the exception classes HBase servers answer with.
const (
	ClassIOException          = "java.io.IOException"
	ClassUnsupportedOperation = "java.lang.UnsupportedOperationException"

	ClassCallDropped                 = hbase + "CallDroppedException"
	ClassCallQueueTooBig             = hbase + "CallQueueTooBigException"
	ClassClockOutOfSync              = hbase + "ClockOutOfSyncException"
	ClassConcurrentTableModification = hbase + "ConcurrentTableModificationException"
	ClassDoNotRetryIO                = hbase + "DoNotRetryIOException"
	ClassDroppedSnapshot             = hbase + "DroppedSnapshotException"
	ClassHBaseIO                     = hbase + "HBaseIOException"
	ClassHBaseServer                 = hbase + "HBaseServerException"
	ClassInvalidFamilyOperation      = hbase + "InvalidFamilyOperationException"
	ClassMasterNotRunning            = hbase + "MasterNotRunningException"
	ClassMultiActionResultTooLarge   = hbase + "MultiActionResultTooLarge"
	ClassNamespaceExist              = hbase + "NamespaceExistException"
	ClassNamespaceNotFound           = hbase + "NamespaceNotFoundException"
	ClassNotAllMetaRegionsOnline     = hbase + "NotAllMetaRegionsOnlineException"
	ClassNotServingRegion            = hbase + "NotServingRegionException"
	ClassPleaseHold                  = hbase + "PleaseHoldException"
	ClassPleaseRestartMaster         = hbase + "PleaseRestartMasterException"
	ClassRegionException             = hbase + "RegionException"
	ClassRegionTooBusy               = hbase + "RegionTooBusyException"
	ClassReplicationPeerNotFound     = hbase + "ReplicationPeerNotFoundException"
	ClassRetryImmediately            = hbase + "RetryImmediatelyException"
	ClassServiceNotRunning           = hbase + "ServiceNotRunningException"
	ClassTableExists                 = hbase + "TableExistsException"
	ClassTableInfoMissing            = hbase + "TableInfoMissingException"
	ClassTableNotDisabled            = hbase + "TableNotDisabledException"
	ClassTableNotEnabled             = hbase + "TableNotEnabledException"
	ClassTableNotFound               = hbase + "TableNotFoundException"
	ClassUnknownRegion               = hbase + "UnknownRegionException"
	ClassUnknownScanner              = hbase + "UnknownScannerException"
	ClassYouAreDead                  = hbase + "YouAreDeadException"
	ClassZooKeeperConnection         = hbase + "ZooKeeperConnectionException"

	ClassDoNotRetryRegion       = hbase + "client.DoNotRetryRegionException"
	ClassNoServerForRegion      = hbase + "client.NoServerForRegionException"
	ClassRegionOffline          = hbase + "client.RegionOfflineException"
	ClassRetriesExhausted       = hbase + "client.RetriesExhaustedException"
	ClassClientRowTooBig        = hbase + "client.RowTooBigException"
	ClassWrongRowIO             = hbase + "client.WrongRowIOException"
	ClassConstraint             = hbase + "constraint.ConstraintException"
	ClassCoprocessor            = hbase + "coprocessor.CoprocessorException"
	ClassForeign                = hbase + "errorhandling.ForeignException"
	ClassForeignTimeout         = hbase + "errorhandling.TimeoutException"
	ClassIncompatibleFilter     = hbase + "filter.IncompatibleFilterException"
	ClassInvalidRowFilter       = hbase + "filter.InvalidRowFilterException"
	ClassNoSuchProcedure        = hbase + "master.NoSuchProcedureException"
	ClassReplication            = hbase + "replication.ReplicationException"
	ClassAccessDenied           = hbase + "security.AccessDeniedException"
	ClassConnectionClosed       = hbase + "exceptions.ConnectionClosedException"
	ClassConnectionClosing      = hbase + "exceptions.ConnectionClosingException"
	ClassDeserialization        = hbase + "exceptions.DeserializationException"
	ClassFailedSanityCheck      = hbase + "exceptions.FailedSanityCheckException"
	ClassIllegalArgumentIO      = hbase + "exceptions.IllegalArgumentIOException"
	ClassLockTimeout            = hbase + "exceptions.LockTimeoutException"
	ClassMasterRegistryFetch    = hbase + "exceptions.MasterRegistryFetchException"
	ClassMasterStopped          = hbase + "exceptions.MasterStoppedException"
	ClassMergeRegion            = hbase + "exceptions.MergeRegionException"
	ClassOperationConflict      = hbase + "exceptions.OperationConflictException"
	ClassOutOfOrderScannerNext  = hbase + "exceptions.OutOfOrderScannerNextException"
	ClassPreemptiveFastFail     = hbase + "exceptions.PreemptiveFastFailException"
	ClassRegionMoved            = hbase + "exceptions.RegionMovedException"
	ClassRegionOpening          = hbase + "exceptions.RegionOpeningException"
	ClassRequestTooBig          = hbase + "exceptions.RequestTooBigException"
	ClassScannerReset           = hbase + "exceptions.ScannerResetException"
	ClassTimeoutIO              = hbase + "exceptions.TimeoutIOException"
	ClassUnexpectedState        = hbase + "exceptions.UnexpectedStateException"
	ClassUnknownProtocol        = hbase + "exceptions.UnknownProtocolException"
	ClassQuotaExceeded          = hbase + "quotas.QuotaExceededException"
	ClassRpcThrottling          = hbase + "quotas.RpcThrottlingException"
	ClassSpaceLimiting          = hbase + "quotas.SpaceLimitingException"
	ClassThrottling             = hbase + "quotas.ThrottlingException"
	ClassLease                  = hbase + "regionserver.LeaseException"
	ClassNoSuchColumnFamily     = hbase + "regionserver.NoSuchColumnFamilyException"
	ClassRegionServerAborted    = hbase + "regionserver.RegionServerAbortedException"
	ClassRegionServerStopped    = hbase + "regionserver.RegionServerStoppedException"
	ClassRowTooBig              = hbase + "regionserver.RowTooBigException"
	ClassWrongRegion            = hbase + "regionserver.WrongRegionException"
	ClassHBaseSnapshot          = hbase + "snapshot.HBaseSnapshotException"
	ClassCorruptedSnapshot      = hbase + "snapshot.CorruptedSnapshotException"
	ClassExportSnapshot         = hbase + "snapshot.ExportSnapshotException"
	ClassRestoreSnapshot        = hbase + "snapshot.RestoreSnapshotException"
	ClassSnapshotCreation       = hbase + "snapshot.SnapshotCreationException"
	ClassSnapshotDoesNotExist   = hbase + "snapshot.SnapshotDoesNotExistException"
	ClassSnapshotExists         = hbase + "snapshot.SnapshotExistsException"
	ClassSnapshotTTLExpired     = hbase + "snapshot.SnapshotTTLExpiredException"
	ClassTablePartiallyOpen     = hbase + "snapshot.TablePartiallyOpenException"
	ClassUnknownSnapshot        = hbase + "snapshot.UnknownSnapshotException"
	ClassInvalidLabel           = hbase + "security.visibility.InvalidLabelException"
	ClassLabelAlreadyExists     = hbase + "security.visibility.LabelAlreadyExistsException"
	ClassVisibilityNotReady     = hbase + "security.visibility.VisibilityControllerNotReadyException"
	ClassCorruptHFile           = hbase + "io.hfile.CorruptHFileException"
	ClassBadAuth                = hbase + "ipc.BadAuthException"
	ClassCallTimeout            = hbase + "ipc.CallTimeoutException"
	ClassCallerDisconnected     = hbase + "ipc.CallerDisconnectedException"
	ClassDecommissionedHost     = hbase + "ipc.DecommissionedHostRejectedException"
	ClassEmptyServiceName       = hbase + "ipc.EmptyServiceNameException"
	ClassFailedServer           = hbase + "ipc.FailedServerException"
	ClassFatalConnection        = hbase + "ipc.FatalConnectionException"
	ClassSecurityNotEnabled     = hbase + "ipc.SecurityNotEnabledException"
	ClassServerNotRunningYet    = hbase + "ipc.ServerNotRunningYetException"
	ClassServerTooBusy          = hbase + "ipc.ServerTooBusyException"
	ClassStoppedRPCClient       = hbase + "ipc.StoppedRpcClientException"
	ClassUnknownService         = hbase + "ipc.UnknownServiceException"
	ClassUnsupportedCellCodec   = hbase + "ipc.UnsupportedCellCodecException"
	ClassUnsupportedCompression = hbase + "ipc.UnsupportedCompressionCodecException"
	ClassUnsupportedCrypto      = hbase + "ipc.UnsupportedCryptoException"
	ClassWrongVersion           = hbase + "ipc.WrongVersionException"

	hbase = "org.apache.hadoop.hbase."
)

// classDoesNotRetry tells the subclasses of DoNotRetryIOException, as HBase
// 2.4 and 2.6 declare them. The flag in a response header says so by itself;
// the results of a multi carry the class name alone.
func classDoesNotRetry(class string) bool {
	name, ok := strings.CutPrefix(class, hbase)
	if !ok {
		return false
	}
	switch name {
	case "DoNotRetryIOException",
		"ConcurrentTableModificationException",
		"InvalidFamilyOperationException",
		"NamespaceExistException",
		"NamespaceNotFoundException",
		"NotAllMetaRegionsOnlineException",
		"ReplicationPeerNotFoundException",
		"TableExistsException",
		"TableNotDisabledException",
		"TableNotEnabledException",
		"TableNotFoundException",
		"UnknownRegionException",
		"UnknownScannerException",
		"client.DoNotRetryRegionException",
		"client.NoServerForRegionException",
		"client.OperationTimeoutExceededException",
		"client.RowTooBigException",
		"constraint.ConstraintException",
		"coprocessor.CoprocessorException",
		"exceptions.FailedSanityCheckException",
		"exceptions.MasterStoppedException",
		"exceptions.MergeRegionException",
		"exceptions.OperationConflictException",
		"exceptions.OutOfOrderScannerNextException",
		"exceptions.RequestTooBigException",
		"exceptions.ScannerResetException",
		"exceptions.UnknownProtocolException",
		"io.hfile.CorruptHFileException",
		"ipc.ServerTooBusyException",
		"ipc.StoppedRpcClientException",
		"quotas.QuotaExceededException",
		"quotas.SpaceLimitingException",
		"quotas.ThrottlingException",
		"regionserver.LeaseException",
		"regionserver.NoSuchColumnFamilyException",
		"regionserver.RowTooBigException",
		"security.AccessDeniedException",
		"security.visibility.InvalidLabelException",
		"security.visibility.LabelAlreadyExistsException",
		"snapshot.HBaseSnapshotException",
		"snapshot.CorruptedSnapshotException",
		"snapshot.ExportSnapshotException",
		"snapshot.RestoreSnapshotException",
		"snapshot.SnapshotCreationException",
		"snapshot.SnapshotDoesNotExistException",
		"snapshot.SnapshotExistsException",
		"snapshot.SnapshotTTLExpiredException",
		"snapshot.UnknownSnapshotException":
		return true
	}
	return ClassIsFatal(class)
}

// classIsOverload tells the classes by which a server sheds load
// (HBaseServerException and its subclasses).
func classIsOverload(class string) bool {
	return class == ClassCallQueueTooBig || class == ClassCallDropped
}

// ClassIsFatal tells FatalConnectionException and its subclasses: they end the
// connection, and with it every call on it.
func ClassIsFatal(class string) bool {
	switch class {
	case ClassFatalConnection, ClassWrongVersion, ClassBadAuth, ClassUnknownService, ClassEmptyServiceName,
		ClassUnsupportedCellCodec, ClassUnsupportedCompression, ClassUnsupportedCrypto:
		return true
	}
	return false
}

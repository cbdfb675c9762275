package checks

import (
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// Entry is the catalogue's page on one verdict.
type Entry struct {
	ID       string           `json:"id"`
	Severity finding.Severity `json:"severity"` // the highest it is reported at
	Meaning  string           `json:"meaning"`
	Decided  string           `json:"decided"`
	Confirm  string           `json:"confirm"`
	Fix      []string         `json:"fix"`
	Not      []string         `json:"not,omitempty"`
}

// Catalog lists every verdict, sorted by id.
func Catalog() []Entry {
	var out []Entry
	for id, e := range catalog {
		e.ID = id
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Explain returns the page on one verdict.
func Explain(id string) (Entry, bool) {
	id = strings.ToUpper(strings.ReplaceAll(id, "-", "_"))
	e, ok := catalog[id]
	e.ID = id
	return e, ok
}

// catalog is constant.
var catalog = map[string]Entry{
	"RETRY_NEVER_POSSIBLE":          {Severity: finding.Critical, Meaning: "timeouts leave no room for a first retry", Decided: "0.98.21-0.98.24 give up when elapsed + hbase.rpc.timeout + next pause > hbase.client.operation.timeout; with the rpc timeout that large the first failure is the last. In a log: callDuration - rpc timeout is one pause and a few milliseconds.", Confirm: "time one failing call: it ends within milliseconds although the message says minutes", Fix: []string{"hbase.rpc.timeout well below hbase.client.operation.timeout, a tenth of it for example"}, Not: []string{"the server was slow for the printed time"}},
	"STALE_LOCATION_NOT_REFRESHED":  {Severity: finding.Error, Meaning: "the client keeps a location that is out of date, because only a retry would correct it", Decided: "follows from RETRY_NEVER_POSSIBLE", Confirm: "a restarted or fresh client succeeds", Fix: []string{"make retries possible"}},
	"RETRY_ROOM_SMALL":              {Severity: finding.Info, Meaning: "at most one full-length retry fits into the operation timeout", Decided: "hbase.rpc.timeout > hbase.client.operation.timeout / 2", Confirm: "holdfast doctor explain-retries", Fix: []string{"a third of the operation timeout or less"}},
	"RETRY_BUDGET_FAST_FAIL":        {Severity: finding.Error, Meaning: "the call gave up on the clock after a series of immediate failures", Decided: "the pauses of the schedule add up to the printed duration with next to no time left for calls, in at least one index convention", Confirm: "connect to the named server from the client's host", Fix: []string{"names, ports, routes, and the cluster's hbase-site.xml on the client"}, Not: []string{"the server was slow", "increase the timeout"}},
	"RETRY_BUDGET_SLOW_RPC":         {Severity: finding.Error, Meaning: "the call gave up on the clock and the RPCs themselves used the time", Decided: "after all pauses that fit, much of the printed duration is left, or a call's own wait time is printed", Confirm: "the server's log: responseTooSlow, pauses, queue", Fix: []string{"the server, or what is asked of it"}, Not: []string{"names or ports"}},
	"RETRY_BUDGET_SHORT":            {Severity: finding.Error, Meaning: "all attempts were used up in less time than a region move takes", Decided: "the pauses of the printed number of attempts sum to under 10 s", Confirm: "holdfast doctor explain-retries with the settings", Fix: []string{"more attempts or a longer pause"}},
	"RETRY_BUDGET_VS_FAILOVER":      {Severity: finding.Warning, Meaning: "the whole retry time is shorter than the time until a crashed server is noticed", Decided: "sum of all pauses < zookeeper.session.timeout", Confirm: "kill -9 a region server of a test cluster under load", Fix: []string{"choose the failover time to survive, then the totals"}},
	"RETRY_BUDGET_HOURS":            {Severity: finding.Warning, Meaning: "a failing call goes on for hours", Decided: "sum of all pauses > 1 h", Confirm: "holdfast doctor explain-retries", Fix: []string{"lower hbase.client.pause"}},
	"RETRIES_EXHAUSTED":             {Severity: finding.Error, Meaning: "a call gave up; its attempts are not in the input", Decided: "only the count is printed", Confirm: "the whole exception", Fix: []string{"give the doctor the whole exception"}},
	"BATCH_RETRYING":                {Severity: finding.Warning, Meaning: "a batch is being retried", Decided: "AsyncProcess prints attempt n of m", Confirm: "later lines of the same batch", Fix: []string{"the cause in the line"}},
	"NAME_UNRESOLVABLE":             {Severity: finding.Error, Meaning: "the client cannot resolve the name a server registered", Decided: "resolver errors and \"can not resolve\"", Confirm: "getent hosts NAME where the client runs", Fix: []string{"DNS or hosts entries, or registered names that resolve"}, Not: []string{"the server is down"}},
	"LOOPBACK_ADVERTISED":           {Severity: finding.Error, Meaning: "the server's name leads back to the client: it resolves to loopback there, or the server registered as localhost", Decided: "a server name or its address is loopback", Confirm: "getent hosts NAME on the client; the server list of the master", Fix: []string{"hbase.regionserver.hostname, hosts files without 127.0.1.1"}},
	"PORT_UNREACHABLE":              {Severity: finding.Error, Meaning: "the name resolves and the port is refused or filtered", Decided: "connection refused, connect timeout, no route; FailedServerException is only the echo of one of them", Confirm: "nc -vz HOST PORT from the client", Fix: []string{"start, publish or open the port the server registered"}, Not: []string{"the server is slow"}},
	"WRONG_PORT_CLASS":              {Severity: finding.Error, Meaning: "right host, port of another service", Decided: "the port is one of the well-known ports of another service, or a server got bytes of another protocol", Confirm: "compare with the service's own configuration", Fix: []string{"2181 ZooKeeper, 16000/60000 master, 16020/60020 region server, 16010/60010 and 16030/60030 web, 9090 Thrift, 8080 REST"}},
	"ZNODE_PARENT_MISMATCH":         {Severity: finding.Error, Meaning: "client and cluster disagree on zookeeper.znode.parent, or HBase never started", Decided: "ZooKeeper answers and the nodes HBase writes are not there", Confirm: "zkCli: ls /; which node has children hbaseid, master, rs", Fix: []string{"the cluster's hbase-site.xml on the client"}},
	"MASTER_NOT_RUNNING":            {Severity: finding.Error, Meaning: "no active master was found", Decided: "MasterNotRunningException without a resolver or connect error inside", Confirm: "the master's log", Fix: []string{"start the master"}},
	"ZK_UNREACHABLE":                {Severity: finding.Error, Meaning: "no ZooKeeper session at all", Decided: "connects fail or CONNECTIONLOSS, and no session is established", Confirm: "echo srvr | nc HOST 2181", Fix: []string{"quorum and port of the client's configuration"}},
	"ZK_TOO_MANY_CONNECTIONS":       {Severity: finding.Error, Meaning: "per-address connection limit hit, usually a connection leak", Decided: "ZooKeeper's own line", Confirm: "cons (four-letter word) grouped by address", Fix: []string{"one HBase connection per process"}, Not: []string{"maxClientCnxns is too small"}},
	"ZK_SESSION_EXPIRED":            {Severity: finding.Error, Meaning: "a ZooKeeper session ran out and the input does not show why", Decided: "expiry without pause lines and without network errors", Confirm: "GC log and network of the minute before", Fix: []string{"see the two alternatives"}},
	"ZK_SESSION_EXPIRED_NETWORK":    {Severity: finding.Critical, Meaning: "session lost by partition", Decided: "silence, failed connects, no pause; the timeline shows by how much the reconnect was late", Confirm: "other hosts lost their connections in the same minute", Fix: []string{"the network; a connect timeout that lets every server be tried in time"}, Not: []string{"garbage collection"}},
	"ZK_SESSION_EXPIRED_PAUSE":      {Severity: finding.Critical, Meaning: "session lost by a process that stood still", Decided: "a measured pause longer than two thirds of the session timeout", Confirm: "GC log; host suspension, swapping", Fix: []string{"shorter collections; a longer session on both sides"}, Not: []string{"the network"}},
	"ZK_CONNECTION_LOST":            {Severity: finding.Warning, Meaning: "a ZooKeeper connection fell silent and was replaced in time", Decided: "read timeouts without expiry", Confirm: "later lines establish the session again", Fix: []string{"look at that server if it recurs"}},
	"ZK_TIMEOUT_CLAMPED":            {Severity: finding.Warning, Meaning: "asked session timeout is outside the server's limits and silently replaced", Decided: "min(max(asked, 2 ticks or minSessionTimeout), 20 ticks or maxSessionTimeout), or the negotiated value in a log", Confirm: "\"negotiated timeout\" in the client's log", Fix: []string{"maxSessionTimeout in zoo.cfg"}},
	"STALE_META_LOCATION":           {Severity: finding.Error, Meaning: "where hbase:meta is believed to be is out of date", Decided: "the server asked for hbase:meta says it does not hold it", Confirm: "znode meta-region-server against the master's UI", Fix: []string{"znode parent, one cluster per name"}},
	"STALE_REGION_LOCATION":         {Severity: finding.Error, Meaning: "cached location of a user region is out of date", Decided: "NotServingRegion, RegionMoved or a row outside the region, without repetition over a whole schedule", Confirm: "a second attempt", Fix: []string{"clear the cache; let the client retry"}},
	"REGION_IN_TRANSITION":          {Severity: finding.Error, Meaning: "a region stays unassigned; client retries cannot help", Decided: "the master says STUCK or FAILED_OPEN, or the same region and server answer so over a whole retry schedule", Confirm: "regions in transition of the master's UI", Fix: []string{"1.x hbck, 2.x HBCK2 assigns"}, Not: []string{"retries help"}},
	"REGION_OPENING":                {Severity: finding.Warning, Meaning: "short state during open, alter, move", Decided: "RegionOpeningException", Confirm: "a retry succeeds", Fix: []string{"retry"}},
	"MASTER_INITIALIZING":           {Severity: finding.Error, Meaning: "PleaseHoldException and friends: the master has not finished its start", Decided: "the exceptions' own words; info if the master finished later in the input", Confirm: "the master's log", Fix: []string{"wait; see which region it waits for"}},
	"SERVER_OVERLOADED_QUEUE":       {Severity: finding.Error, Meaning: "call queue full", Decided: "CallQueueTooBigException; a single host means a hot spot", Confirm: "queue length and handler metrics of that server", Fix: []string{"split or move the hot region"}, Not: []string{"the queue limit is too small"}},
	"REGION_TOO_BUSY_MEMSTORE":      {Severity: finding.Error, Meaning: "memstore above its blocking size", Decided: "RegionTooBusyException with memstore sizes", Confirm: "flush queue and store files of that region", Fix: []string{"pre-split, back off"}},
	"REGION_TOO_BUSY_LOCK":          {Severity: finding.Error, Meaning: "a handler could not get a lock of the region in time", Decided: "RegionTooBusyException: failed to get a lock", Confirm: "long flush, split, bulk load", Fix: []string{"see the region"}},
	"SCANNER_LEASE_EXPIRED":         {Severity: finding.Error, Meaning: "client took too long between two next calls", Decided: "UnknownScanner, Lease and ScannerTimeout exceptions, missing scanners at the server", Confirm: "time per row x rows per fetch", Fix: []string{"fewer rows per fetch"}, Not: []string{"data is lost"}},
	"SCANNER_SEQ_OUT_OF_ORDER":      {Severity: finding.Error, Meaning: "a next call timed out at the client while the server completed it", Decided: "OutOfOrderScannerNextException", Confirm: "slow next calls in the server's log", Fix: []string{"less per call, longer rpc timeout"}},
	"SCANNER_ALREADY_CLOSED_BENIGN": {Severity: finding.Info, Meaning: "noise on close", Decided: "the client says \"probably already closed\"", Confirm: "nothing to confirm", Fix: []string{"close scanners early"}},
	"META_LOCK_TIMEOUT":             {Severity: finding.Error, Meaning: "threads wait too long for the lock of region lookups", Decided: "LockTimeoutException", Confirm: "jstack", Fix: []string{"several connections; a fast hbase:meta"}},
	"META_LOCK_UNBOUNDED":           {Severity: finding.Warning, Meaning: "the wait for the lookup lock is not bounded by the operation's own timeout", Decided: "hbase.client.meta.operation.timeout (20 min by default) above hbase.client.operation.timeout", Confirm: "jstack during a slow hbase:meta", Fix: []string{"set it to the operation timeout"}},
	"LOCK_CONVOY_META_LOOKUP":       {Severity: finding.Critical, Meaning: "threads queue for the lookup lock while its holder retries", Decided: "a thread dump: one lock, its holder asleep between attempts or in a call, the waiters in locateRegion", Confirm: "a second dump some seconds later", Fix: []string{"smaller retry budget, other client"}, Not: []string{"deadlock"}},
	"LOCK_CONVOY":                   {Severity: finding.Warning, Meaning: "many threads wait for one lock", Decided: "a thread dump: five or more waiters", Confirm: "a second dump", Fix: []string{"see the holder's frames"}},
	"CLIENT_DEADLOCK":               {Severity: finding.Critical, Meaning: "threads wait for each other's locks for ever", Decided: "the JVM's own finding, or a cycle in the dump", Confirm: "a second dump", Fix: []string{"restart, upgrade"}},
	"CLIENT_CONNECTION_CONTENTION":  {Severity: finding.Info, Meaning: "many threads share one connection's writer", Decided: "threads blocked on their own call objects inside the RPC client", Confirm: "hbase.client.ipc.pool.size larger helps", Fix: []string{"more connections"}},
	"KERBEROS_NO_TGT":               {Severity: finding.Error, Meaning: "no Kerberos ticket in the process", Decided: "GSS errors; stack frames decide whether HBase, HDFS or Thrift asked", Confirm: "klist in the process's environment", Fix: []string{"log in from a keytab"}},
	"KERBEROS_RELOGIN_LOOP":         {Severity: finding.Error, Meaning: "logs in again and again without a ticket", Decided: "repeated re-login lines", Confirm: "KDC log", Fix: []string{"keytab login and renewal"}},
	"KERBEROS_WRONG_PRINCIPAL":      {Severity: finding.Error, Meaning: "service principal or keytab is not the server's", Decided: "\"Server not found in Kerberos database\", checksum failures", Confirm: "kvno PRINCIPAL", Fix: []string{"principals of the configuration, DNS"}},
	"KERBEROS_CLOCK_SKEW":           {Severity: finding.Error, Meaning: "clocks differ by more than Kerberos allows", Decided: "\"Clock skew too great\"", Confirm: "date on all hosts", Fix: []string{"NTP"}},
	"COPROCESSOR_ABORT":             {Severity: finding.Critical, Meaning: "coprocessor failure stops region servers", Decided: "\"The coprocessor X threw\"", Confirm: "the server's log ends with its abort", Fix: []string{"make the jar readable, or unset the coprocessor"}},
	"CLIENT_GONE":                   {Severity: finding.Warning, Meaning: "server view of a client timeout", Decided: "output error, client went away", Confirm: "the client's log", Fix: []string{"what took the server so long"}},
	"PROCESS_PAUSED":                {Severity: finding.Warning, Meaning: "a process stood still for 10 s or more", Decided: "\"We slept\", pause monitor, GC log", Confirm: "GC log", Fix: []string{"heap, host"}},
	"SERVER_DECLARED_DEAD":          {Severity: finding.Error, Meaning: "the master declared a region server dead that still ran", Decided: "YouAreDeadException", Confirm: "pause or network fault before", Fix: []string{"the reason of the lost session"}},
	"GATEWAY_STALE_ROUTE":           {Severity: finding.Error, Meaning: "a shared gateway keeps old routes of one table", Decided: "symptoms: one table affected, shell and fresh client fine, other tables fine", Confirm: "evict the table's locations: it recovers at once", Fix: []string{"evict; restart as fallback"}},
	"META_LOOKUP_SLOW":              {Severity: finding.Warning, Meaning: "lookups in hbase:meta are slow", Decided: "first access above 1000 ms with more than 300000 regions", Confirm: "holdfast route explain", Fix: []string{"fewer regions"}},
	"OUTCOME_UNKNOWN":               {Severity: finding.Error, Meaning: "a request may or may not have been executed", Decided: "this project's client says so", Confirm: "read the row", Fix: []string{"read before deciding"}},
	"NOT_A_FAULT":                   {Severity: finding.Info, Meaning: "line looks alarming, is normal", Decided: "known harmless forms", Confirm: "nothing to confirm", Fix: nil},
	"KYLIN_ENDPOINT_DEADLINE":       {Severity: finding.Info, Meaning: "Kylin's endpoint deadline follows hbase.rpc.timeout", Decided: "coprocessor-timeout-seconds is 0: 0.9 x hbase.rpc.timeout", Confirm: "Kylin's log", Fix: nil},
	"KYLIN_RPC_TIMEOUT_RAISED":      {Severity: finding.Info, Meaning: "Kylin raises hbase.rpc.timeout in its process", Decided: "1.1 x coprocessor-timeout-seconds", Confirm: "Kylin's log", Fix: nil},
	"SCAN_TIMEOUT_MIX":              {Severity: finding.Info, Meaning: "scan calls get the rpc timeout, not the scanner's", Decided: "rpc timeout far below the scanner timeout", Confirm: "client release", Fix: []string{"raise hbase.rpc.timeout for scanning clients"}},
	"SETTING_NOT_A_NUMBER":          {Severity: finding.Error, Meaning: "a numeric setting does not parse", Decided: "the file", Confirm: "the file", Fix: []string{"digits"}},
	"OUT_OF_MEMORY":                 {Severity: finding.Critical, Meaning: "a JVM ran out of memory; what follows in its log are consequences", Decided: "java.lang.OutOfMemoryError", Confirm: "heap dump, GC log; \"unable to create native thread\" means threads or process limits instead", Fix: []string{"find what filled the heap; a client: connections and buffered mutators that are never closed"}},
	"TOO_MANY_FILES":                {Severity: finding.Error, Meaning: "the process may not open more files or sockets", Decided: "Too many open files", Confirm: "ls /proc/PID/fd | wc -l", Fix: []string{"raise nofile to 32768 or more for servers; in a client look for leaked connections"}},
	"DISK_FULL":                     {Severity: finding.Critical, Meaning: "a disk is full", Decided: "No space left on device", Confirm: "df -h, df -i", Fix: []string{"make room; ZooKeeper and write-ahead logs stop everything else"}},
	"HDFS_SAFE_MODE":                {Severity: finding.Critical, Meaning: "HDFS is in safe mode, so HBase cannot write", Decided: "SafeModeException", Confirm: "hdfs dfsadmin -safemode get", Fix: []string{"missing blocks or DataNodes first; then leave safe mode"}},
	"ACCESS_DENIED":                 {Severity: finding.Error, Meaning: "the user lacks a permission", Decided: "AccessDeniedException", Confirm: "user_permission in the shell", Fix: []string{"grant it"}, Not: []string{"retry"}},
	"TABLE_NOT_FOUND":               {Severity: finding.Warning, Meaning: "the table does not exist in the cluster that was asked", Decided: "TableNotFoundException", Confirm: "list in the shell of the same cluster; namespace", Fix: []string{"name, namespace, cluster"}},
	"TABLE_DISABLED":                {Severity: finding.Warning, Meaning: "the table is disabled", Decided: "TableNotEnabledException", Confirm: "is_enabled in the shell", Fix: []string{"enable it"}},
	"FAMILY_NOT_FOUND":              {Severity: finding.Error, Meaning: "the table has no such column family", Decided: "NoSuchColumnFamilyException", Confirm: "describe in the shell", Fix: []string{"name or alter"}},
	"THROTTLED":                     {Severity: finding.Warning, Meaning: "a quota holds the client back", Decided: "RpcThrottlingException", Confirm: "list_quotas", Fix: []string{"wait as asked, or raise the quota"}},
	"CELL_TOO_LARGE":                {Severity: finding.Error, Meaning: "a cell or request is larger than the limit", Decided: "KeyValue size too large, RequestTooBig", Confirm: "hbase.client.keyvalue.maxsize, hbase.ipc.max.request.size", Fix: []string{"smaller cells; MOB or a file store for large ones"}},
	"CORRUPT_FILE":                  {Severity: finding.Critical, Meaning: "a store file is damaged", Decided: "CorruptHFileException", Confirm: "hbase hfile -v -f FILE; hdfs fsck", Fix: []string{"restore the block's replicas, or move the file aside"}},
	"VERSION_MISMATCH":              {Severity: finding.Error, Meaning: "client and server do not speak the same version", Decided: "IPC version errors, PBUF where host:port was expected", Confirm: "both versions", Fix: []string{"a client of the cluster's line; one version on the class path"}},
	"HEDGE_EXHAUSTED":               {Severity: finding.Warning, Meaning: "all replicas failed", Decided: "its own words", Confirm: "replica servers", Fix: []string{"see the replicas' errors"}},
	"PORT_IN_USE":                   {Severity: finding.Error, Meaning: "a server cannot bind its port: another process has it", Decided: "Address already in use", Confirm: "ss -ltnp | grep PORT", Fix: []string{"end the other process, often an older instance, or choose another port"}},
	"SERVER_SLOW":                   {Severity: finding.Warning, Meaning: "a server answers slowly", Decided: "responseTooSlow lines", Confirm: "the requests named in them", Fix: []string{"what they ask for; disk, flushes, compactions, collections of that time"}},
	"CLOCK_SKEW":                    {Severity: finding.Error, Meaning: "a region server's clock differs too much from the master's, so it is not let in", Decided: "ClockOutOfSyncException", Confirm: "date on both hosts", Fix: []string{"NTP; hbase.master.maxclockskew is 30 s"}},
	"META_HOLE":                     {Severity: finding.Critical, Meaning: "no region of a table covers some rows", Decided: "live check: end key and next start key differ", Confirm: "hbck", Fix: []string{"HBCK2 fixMeta"}},
	"META_OVERLAP":                  {Severity: finding.Critical, Meaning: "two regions of a table cover the same rows", Decided: "live check", Confirm: "hbck", Fix: []string{"HBCK2 fixMeta"}},
	"ZK_NOT_SERVING":                {Severity: finding.Error, Meaning: "a ZooKeeper host accepts connections and does not serve", Decided: "live check: no Mode line in the answer to srvr", Confirm: "echo srvr | nc HOST 2181", Fix: []string{"its log; quorum"}},
}

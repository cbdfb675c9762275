package checks

import "strings"

// faultWords are faults whose name is nearly the whole diagnosis; their
// verdicts stand in simpleFaults.
func faultWords() []word {
	words := []word{
		{"FailedtofindanyKerberostgt", readKerberos(KerberosNoTGT)},
		{"missingorinvalidcredentials.Consider'kinit'", readKerberos(KerberosNoTGT)},
		{"ClientcannotauthenticateVia:[", readKerberos(KerberosNoTGT)},
		{"Novalidcredentialsprovided", readKerberos(KerberosNoTGT)},
		{"Unabletoobtainpasswordfromuser", readKerberos(KerberosNoTGT)},
		{"Loginfailureforuser", readKerberos(KerberosNoTGT)},
		{"GSSinitiatefailed", readKerberos(KerberosNoTGT)},
		{"Framesize(", readMisread},
		{"Unreasonablelength=", readMisread},
		{"Lenerror", readMisread},
		{"ServernotfoundinKerberosdatabase", readKerberos(KerberosPrincipal)},
		{"Failedtospecifyserver'sKerberosprincipal", readKerberos(KerberosPrincipal)},
		{"Serverhasinvalidkerberosprincipal", readKerberos(KerberosPrincipal)},
		{"Checksumfailed", readKerberos(KerberosPrincipal)},
		{"Notattemptingtore-login", readKerberos(KerberosRelogin)},
		{"Exceptionencounteredwhileconnectingtotheserver:javax.security.sasl", readKerberos(KerberosRelogin)},
		{"Clockskewtoogreat", readKerberos(KerberosClock)},
		{"ClockOutOfSyncException", simple(OtherFault, "CLOCK_SKEW")},
		{"org.apache.kylin.", simple(Kylin, "")},
	}
	for _, f := range simpleFaults() {
		for _, w := range f.words {
			words = append(words, word{w, simple(OtherFault, f.id)})
		}
	}
	return words
}

// readKerberos decides by stack frames whose Kerberos it is: the same text
// comes from HDFS, Thrift and HBase.
func readKerberos(k Kind) func(*extraction, int) {
	return func(x *extraction, at int) {
		for _, o := range x.out {
			if o.Kind == k {
				return
			}
		}
		f := x.fact(k, at)
		s := x.s
		switch {
		case strings.Contains(s, "org.apache.hadoop.hbase.security.") || strings.Contains(s, "org.apache.hadoop.hbase.ipc."):
			f.Class = "HBase RPC"
		case strings.Contains(s, "org.apache.zookeeper."):
			f.Class = "ZooKeeper"
		case strings.Contains(s, "TSasl") || strings.Contains(s, "org.apache.thrift."):
			f.Class = "Thrift"
		case strings.Contains(s, "org.apache.hadoop.ipc.Client") || strings.Contains(s, "org.apache.hadoop.hdfs."):
			f.Class = "HDFS or YARN"
		case strings.Contains(s, "hbase"):
			f.Class = "HBase"
		}
		w := window(s, at, 200)
		f.Path, _ = text(before(s, at, 200)+w, "principal:", ",;", 100)
	}
}

// simpleFault is a fault with one meaning wherever it appears.
type simpleFault struct {
	id    string
	words []string
}

func simpleFaults() []simpleFault {
	return []simpleFault{
		{"OUT_OF_MEMORY", []string{"java.lang.OutOfMemoryError"}},
		{"TOO_MANY_FILES", []string{"Toomanyopenfiles"}},
		{"DISK_FULL", []string{"Nospaceleftondevice"}},
		{"HDFS_SAFE_MODE", []string{"NameNodeisinsafemode", "SafeModeException"}},
		{"ACCESS_DENIED", []string{"AccessDeniedException:Insufficientpermissions"}},
		{"TABLE_NOT_FOUND", []string{"TableNotFoundException"}},
		{"TABLE_DISABLED", []string{"TableNotEnabledException"}},
		{"FAMILY_NOT_FOUND", []string{"NoSuchColumnFamilyException"}},
		{"THROTTLED", []string{"RpcThrottlingException", "quotas.ThrottlingException"}},
		{"CELL_TOO_LARGE", []string{"KeyValuesizetoolarge", "RequestTooBigException"}},
		{"CORRUPT_FILE", []string{"CorruptHFileException"}},
		{"VERSION_MISMATCH", []string{"Serveripcversion", "isnotahost:portpair", "Notahost:portpair", "InvalidProtocolBufferException", "NoSuchMethodError:org.apache.hadoop.hbase", "NoClassDefFoundError:org/apache/hadoop/hbase", "com.google.common.base.Stopwatch", "HBaseZeroCopyByteString"}},
		{"WRONG_PORT_CLASS", []string{"Expectedmagicnumber", "ExpectedHEADER=HBas", "UnsupportedRPCversion"}},
		{"PORT_IN_USE", []string{"Addressalreadyinuse"}},
		{"HEDGE_EXHAUSTED", []string{"Toomanyreplicasfailed"}},
	}
}

// readMisread reads a length that was none: the first bytes of another protocol
// taken for a number. 1195725856 is "GET ".
func readMisread(x *extraction, at int) {
	w := strings.TrimLeft(window(x.s, at, 24), "(=")
	v, _, ok := intAt(w, 0)
	f := x.fact(OtherFault, at)
	f.Class = "WRONG_PORT_CLASS"
	if !ok || v > 0xffffffff {
		return
	}
	b := []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
	for _, c := range b {
		if c < ' ' || c > '~' {
			return
		}
	}
	f.Path = string(b)
}

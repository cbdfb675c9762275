package cells

// Java classes of the exceptions that reading and writing cells can raise.
const (
	ClassIOException        = "java.io.IOException"
	ClassDoNotRetry         = "org.apache.hadoop.hbase.DoNotRetryIOException"
	ClassNoSuchColumnFamily = "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException"
	ClassRowTooBig          = "org.apache.hadoop.hbase.regionserver.RowTooBigException"
)

// Exception is a refusal in HBase's own words: the class a Java server would
// answer with. The RPC server sends it as it stands; nothing else about it
// needs to be known there.
type Exception struct {
	Class   string
	Message string
	// DoNotRetry is what the response header says; a client of HBase retries
	// whatever does not set it.
	DoNotRetry bool
	// Family is set with ClassNoSuchColumnFamily, so that whoever knows the
	// region can complete the message (see InRegion).
	Family []byte
}

func (e *Exception) Error() string { return e.Class + ": " + e.Message }

// InRegion completes the message of a NoSuchColumnFamilyException as HBase
// words it. Other exceptions come back unchanged.
func (e *Exception) InRegion(regionName, tableDescription string) *Exception {
	if e.Class != ClassNoSuchColumnFamily {
		return e
	}
	f := *e
	f.Message = "Column family " + string(e.Family) + " does not exist in region " + regionName + " in table " + tableDescription
	return &f
}

// IOException is a plain java.io.IOException: clients retry it. HBase answers
// with it whenever a check deep in the server fails with a class that is no
// IOException itself.
func IOException(message string) *Exception {
	return &Exception{Class: ClassIOException, Message: message}
}

// DoNotRetry is a DoNotRetryIOException: clients hand it to their caller.
func DoNotRetry(message string) *Exception {
	return &Exception{Class: ClassDoNotRetry, Message: message, DoNotRetry: true}
}

// NoSuchFamily is the refusal of a family the table does not have.
func NoSuchFamily(family []byte) *Exception {
	return &Exception{Class: ClassNoSuchColumnFamily, DoNotRetry: true, Family: family,
		Message: "Column family " + string(family) + " does not exist"}
}

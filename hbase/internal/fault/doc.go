// Package fault holds the errors that hbase and hbase/admin share: sentinels,
// the wrapper that knows which server exception means which sentinel, and the
// questions a caller may ask of any error. hbase re-exports all of it.
//
// It imports only internal packages; users meet its contents as hbase.Err...
package fault

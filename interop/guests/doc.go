// Package guests runs clients that Holdfast did not write, unchanged, on the
// embedded cluster: Apache HBase's Java client (blocking and asynchronous), the
// real HBase shell, and go-zookeeper. What they print or return is compared
// with what they print or return on real HBase.
package guests

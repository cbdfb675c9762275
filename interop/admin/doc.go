// Package admin runs every call of hbase/admin with the same expectations on
// the embedded cluster and, with the build tag interop, on real HBase 2.6.4 and
// 2.4.17: one cluster of one region server each for all tests.
//
// A test is a function of a cluster, given to each:
//
//	func TestSomething(t *testing.T) {
//		each(t, func(t *testing.T, c *cluster) {
//			// c.adm, c.client; c.v26() where the releases differ
//		})
//	}
//
// Tests share the clusters: they make tables of their own (c.table) and leave
// switches as they were.
package admin

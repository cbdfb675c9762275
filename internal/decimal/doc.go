// Package decimal is java.math.BigDecimal as HBase's BigDecimalColumnInterpreter
// uses it: an integer and a scale, in the byte form of Bytes.toBytes(BigDecimal).
//
// Invariant: no number read from bytes makes arithmetic take more memory than a
// few times its length; scales beyond MaxScale are refused.
//
// Who calls it: the embedded AggregateService and hbase/endpoint.
package decimal

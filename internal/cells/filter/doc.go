// Package filter holds HBase's server-side filters and comparators: made from
// their protobuf form, driven through cells.Filter.
//
// Everything follows the Java classes of the same name, including what is odd
// about them, since results must agree. A class the package does not know is
// refused in HBase's words, never passed over.
//
// The embedded server's readers use it; clients do not need it. It imports
// internal/cells and internal/pb.
package filter

// Package route answers one question: which server holds the region of this
// row. A route is our belief, a location is what hbase:meta says; this package
// keeps the beliefs cheap to read, quick to correct, and hard to overload meta
// with.
package route

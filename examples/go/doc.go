// Package orders is a few lines of an application, for the test beside it: an
// example of package hbasetest.
package orders

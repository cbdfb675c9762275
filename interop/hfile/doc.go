// Package hfile checks internal/hfile, bulk load and export against real
// HBase: its reader reads our files, ours reads what a region server flushed,
// its bulk load tool loads into the embedded cluster and ours into real HBase.
// HFilePeer.java also wrote the files in internal/hfile/testdata.
package hfile

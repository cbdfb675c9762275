// Package zookeeper holds Holdfast's ZooKeeper client and its embedded server against real Apache ZooKeeper: one server and three, stopped, killed and frozen.
//
// The tests carry the build tag interop and take the class path directory (zookeeper, zookeeper-jute, netty, slf4j and their like) from HOLDFAST_PEERS_LIB,
// which make interop sets.
package zookeeper

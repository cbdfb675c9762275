// Package zkserver is the ZooKeeper endpoint of the embedded cluster: one tree in memory, served to unchanged ZooKeeper clients over one or more
// listeners, with exact session expiry and faults on demand.
//
// It serves two callers. The embedded master keeps HBase's znodes in it through the direct calls ([Server.Create], [Server.Set], [Server.Delete],
// [Server.Get], [Server.Children], [Server.OpenSession]), which need no socket. Tests of anything that speaks ZooKeeper use it as the other end
// and break it through [Member.SetFault], [Server.StallLeader], [Server.ExpireSession] and their like.
//
// What is the same as a real server: negotiation, passwords, expiry in buckets of the tick, replies in request order, an event always before the reply
// that could reveal the change, zxids consumed by every write (failed ones too), refusal of clients that have seen a later zxid,
// ACLs (world, auth, digest, ip), four-letter words, watches that replace each other as before 3.9. What is not here: quorums (several listeners are a
// virtual ensemble over one tree), SASL, TTL nodes and reconfiguration, which are refused as a server with the default configuration refuses them, and
// quotas, which are stored and not enforced.
//
// Locks. Server.mu guards the tree, the sessions, the watches and every connection's outgoing queue order: a request is applied, its events are queued
// and its reply is queued under one hold of mu, which is all the ordering the protocol asks for. Nothing blocks under mu except a [Persister].
// Server.mu is taken before a queue's own lock and before Member.mu, never after. Each connection has one reading and one writing goroutine; the server has
// one for expiry and one per listener. Close ends them all before it returns.
//
// Memory is bounded: for each connection by Config.MaxFrame (before anything is allocated), MaxQueued and MaxWatches, for all of them by MaxConns,
// MaxSessions, MaxIncoming, MaxOutgoing and MaxTree.
package zkserver

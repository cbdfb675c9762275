// Package cluster runs the fault suite (internal/torture) against real HBase
// 2.4.17 and 2.6.4: three region servers, each a process of its own, of which
// two are killed and one is frozen under load. Its tests carry the build tag
// interop.
package cluster

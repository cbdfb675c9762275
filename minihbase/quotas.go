package minihbase

import "context"

// ReckonSpace counts now what tables use of their space quotas, as happens every
// Options.SpaceQuotaPeriod and after each change of a quota. When it returns,
// hbase:quota has the figures, calls that come later are refused or let through
// by them, and tables with the policy DISABLE are disabled or enabled. The size
// of a table is that of all its cells as HBase serializes them, flushed or not.
// Without Options.Quotas there is nothing to do.
func (m *Cluster) ReckonSpace(ctx context.Context) error { return m.c.ReckonSpace(ctx) }

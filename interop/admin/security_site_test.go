//go:build interop

package admin

import (
	"os/user"
	"strings"

	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// guarded are the properties of a cluster that has quotas, permissions and
// visibility labels, and whose superuser is whoever runs the test.
func guarded(set string) [][2]string {
	const access, labels = "org.apache.hadoop.hbase.security.access.AccessController", "org.apache.hadoop.hbase.security.visibility.VisibilityController"
	region := []string{"org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint", access, labels}
	master := []string{access, labels}
	if set == peers.HBase24 {
		region = append(region, "org.apache.hadoop.hbase.coprocessor.AggregateImplementation")
		master = append(master, "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint")
	}
	super := "root"
	if u, err := user.Current(); err == nil {
		super = u.Username
	}
	return [][2]string{
		{"hbase.quota.enabled", "true"},
		// Region servers measure, report, and the master reckons every second.
		{"hbase.regionserver.quotas.fs.utilization.chore.delay", "1000"},
		{"hbase.regionserver.quotas.fs.utilization.chore.period", "1000"},
		{"hbase.master.quotas.observer.chore.delay", "1000"},
		{"hbase.master.quotas.observer.chore.period", "1000"},
		{"hbase.regionserver.quotas.region.size.reporting.chore.period", "1000"},
		{"hbase.regionserver.quotas.region.size.reporting.chore.delay", "1000"},
		{"hbase.security.authorization", "true"},
		// So that permissions of cells count for who has none for the table.
		{"hbase.security.access.early_out", "false"},
		{"hbase.superuser", super},
		{"hbase.coprocessor.master.classes", strings.Join(master, ",")},
		{"hbase.coprocessor.region.classes", strings.Join(region, ",")},
		{"hbase.coprocessor.regionserver.classes", access},
	}
}

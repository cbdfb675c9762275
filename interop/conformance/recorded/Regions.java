import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.util.Bytes;

/** The regions of a table. */
final class Regions {
  private Regions() {
  }

  /** By start key. */
  static List<RegionInfo> of(Play p, TableName table) throws Exception {
    try (Admin admin = p.conn.getAdmin()) {
      List<RegionInfo> all = new ArrayList<>(admin.getRegions(table));
      all.sort((a, b) -> Bytes.compareTo(a.getStartKey(), b.getStartKey()));
      return all;
    }
  }

  static RegionInfo holding(Play p, TableName table, byte[] row) throws Exception {
    for (RegionInfo r : of(p, table)) {
      if (r.containsRow(row)) {
        return r;
      }
    }
    throw new IllegalStateException("no region of " + table + " holds " + Bytes.toStringBinary(row));
  }

  static List<RegionMetrics> metrics(Admin admin, TableName table) throws Exception {
    List<RegionMetrics> all = new ArrayList<>();
    for (ServerName s : admin.getRegionServers()) {
      all.addAll(admin.getRegionMetrics(s, table));
    }
    return all;
  }
}

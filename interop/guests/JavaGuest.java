import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * An unchanged Apache HBase client that uses a cluster the way applications do: blocking and
 * asynchronous reads and writes, scans, and admin calls. Prints one line a check and ends with
 * "guest: all N checks passed"; the first check that fails ends it with exit code 1.
 *
 * Arguments: key=value pairs that override the client's configuration.
 */
public class JavaGuest {
  private static int passed;

  private static void check(String what, Object got, Object want) {
    if (!String.valueOf(want).equals(String.valueOf(got))) {
      System.out.println("FAIL " + what + ": got " + got + ", want " + want);
      System.out.flush();
      System.exit(1);
    }
    passed++;
    System.out.println("ok   " + what);
  }

  private static byte[] b(String s) {
    return Bytes.toBytes(s);
  }

  private static String cells(Result r) {
    List<String> out = new ArrayList<>();
    if (r.rawCells() != null) {
      for (org.apache.hadoop.hbase.Cell c : r.rawCells()) {
        out.add(Bytes.toString(org.apache.hadoop.hbase.CellUtil.cloneFamily(c)) + ":"
          + Bytes.toString(org.apache.hadoop.hbase.CellUtil.cloneQualifier(c)) + "="
          + Bytes.toString(org.apache.hadoop.hbase.CellUtil.cloneValue(c)));
      }
    }
    return String.join(",", out);
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.setInt(HConstants.HBASE_CLIENT_RETRIES_NUMBER, 6);
    for (String a : args) {
      int eq = a.indexOf('=');
      conf.set(a.substring(0, eq), a.substring(eq + 1));
    }
    TableName name = TableName.valueOf("guest_java");
    long start = System.nanoTime();
    try (Connection conn = ConnectionFactory.createConnection(conf); Admin admin = conn.getAdmin()) {
      if (admin.tableExists(name)) {
        if (admin.isTableEnabled(name)) {
          admin.disableTable(name);
        }
        admin.deleteTable(name);
      }
      admin.createTable(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build(),
        new byte[][] { b("row30"), b("row60") });
      check("table exists", admin.tableExists(name), true);
      check("table is available", admin.isTableAvailable(name), true);
      check("three regions", admin.getRegions(name).size(), 3);
      check("descriptor keeps VERSIONS",
        admin.getDescriptor(name).getColumnFamily(b("f")).getMaxVersions(), 3);
      check("listed", Arrays.asList(admin.listTableNames()).contains(name), true);

      try (Table t = conn.getTable(name)) {
        blocking(t);
      }
      scans(conn, name);
      move(conn, admin, name);
      async(conf, name);

      admin.flush(name);
      admin.disableTable(name);
      check("disabled", admin.isTableDisabled(name), true);
      admin.deleteTable(name);
      check("gone", admin.tableExists(name), false);
      check("servers alive",
        admin.getClusterMetrics().getLiveServerMetrics().isEmpty(), false);
    }
    System.out.printf("guest: all %d checks passed in %d ms%n", passed,
      TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
    System.exit(0);
  }

  private static void blocking(Table t) throws Exception {
    t.put(new Put(b("a")).addColumn(b("f"), b("q"), b("v1")).addColumn(b("g"), b("x"), b("y")));
    check("get", cells(t.get(new Get(b("a")))), "f:q=v1,g:x=y");
    check("get of an absent row", t.get(new Get(b("nowhere"))).isEmpty(), true);
    check("exists", t.exists(new Get(b("a")).addColumn(b("f"), b("q"))), true);
    t.put(new Put(b("a")).addColumn(b("f"), b("q"), 5000L, b("old")));
    check("versions",
      t.get(new Get(b("a")).addColumn(b("f"), b("q")).readAllVersions()).size(), 2);
    t.delete(new Delete(b("a")).addColumns(b("g"), b("x")));
    check("delete of a column", cells(t.get(new Get(b("a")).addFamily(b("g")))), "");
    check("increment", t.incrementColumnValue(b("n"), b("f"), b("c"), 5), 5L);
    check("increment again", t.incrementColumnValue(b("n"), b("f"), b("c"), -2), 3L);
    check("append",
      Bytes.toString(t.append(new Append(b("a")).addColumn(b("f"), b("q"), b("+"))).getValue(b("f"), b("q"))),
      "v1+");
    check("checkAndMutate holds", t.checkAndMutate(CheckAndMutate.newBuilder(b("a"))
      .ifEquals(b("f"), b("q"), b("v1+")).build(new Put(b("a")).addColumn(b("f"), b("q"), b("v2"))))
      .isSuccess(), true);
    check("checkAndMutate fails", t.checkAndMutate(CheckAndMutate.newBuilder(b("a"))
      .ifNotExists(b("f"), b("q")).build(new Delete(b("a")))).isSuccess(), false);
    RowMutations rm = new RowMutations(b("a"));
    rm.add(new Put(b("a")).addColumn(b("f"), b("r"), b("1")));
    rm.add(new Delete(b("a")).addColumns(b("f"), b("q")));
    t.mutateRow(rm);
    check("mutateRow", cells(t.get(new Get(b("a")).addFamily(b("f")))), "f:r=1");
    List<Put> puts = new ArrayList<>();
    for (int i = 0; i < 90; i++) {
      puts.add(new Put(b(String.format("row%02d", i))).addColumn(b("f"), b("q"), b("v" + i)));
    }
    t.put(puts);
    Object[] out = new Object[3];
    t.batch(Arrays.asList(new Get(b("row05")), new Put(b("row90")).addColumn(b("f"), b("q"), b("v90")),
      new Increment(b("n")).addColumn(b("f"), b("c"), 1)), out);
    check("batch get", cells((Result) out[0]), "f:q=v5");
    check("batch increment", Bytes.toLong(((Result) out[2]).value()), 4L);
    Result[] many = t.get(Arrays.asList(new Get(b("row00")), new Get(b("row59")), new Get(b("nope"))));
    check("multi-get", many.length + " " + cells(many[1]) + " " + many[2].isEmpty(), "3 f:q=v59 true");
    try {
      t.put(new Put(b("a")).addColumn(b("nofamily"), b("q"), b("v")));
      check("put to an unknown family fails", "no error", "error");
    } catch (java.io.IOException e) {
      String text = e.getClass().getSimpleName() + e;
      check("put to an unknown family fails", text.contains("NoSuchColumnFamily"), true);
    }
  }

  private static int count(Table t, Scan s) throws Exception {
    int n = 0;
    byte[] last = null;
    try (ResultScanner rs = t.getScanner(s)) {
      for (Result r : rs) {
        if (last != null) {
          int c = Bytes.compareTo(last, r.getRow());
          if (s.isReversed() ? c <= 0 : c >= 0) {
            check("rows in order", Bytes.toString(last) + " then " + Bytes.toString(r.getRow()), "order");
          }
        }
        last = r.getRow();
        n++;
      }
    }
    return n;
  }

  private static void scans(Connection conn, TableName name) throws Exception {
    try (Table t = conn.getTable(name)) {
      check("scan all", count(t, new Scan()), 93);
      check("scan in small pieces", count(t, new Scan().setCaching(7).setMaxResultSize(200)), 93);
      check("scan a range", count(t, new Scan().withStartRow(b("row10")).withStopRow(b("row70"), true)), 61);
      check("scan reversed", count(t, new Scan().setReversed(true).withStartRow(b("row70")).withStopRow(b("row10"))), 60);
      check("scan reversed from the end", count(t, new Scan().setReversed(true)), 93);
      check("scan with a limit", count(t, new Scan().setLimit(40)), 40);
      check("scan with a filter", count(t, new Scan().setFilter(new PrefixFilter(b("row4")))), 10);
      check("one row scan", count(t, new Scan().withStartRow(b("row15")).setOneRowLimit()), 1);
    }
  }

  private static void move(Connection conn, Admin admin, TableName name) throws Exception {
    try (Table t = conn.getTable(name); RegionLocator loc = conn.getRegionLocator(name)) {
      HRegionLocation before = loc.getRegionLocation(b("row40"));
      ServerName to = null;
      for (ServerName s : admin.getRegionServers()) {
        if (!s.equals(before.getServerName())) {
          to = s;
        }
      }
      if (to == null) {
        return;
      }
      admin.move(before.getRegion().getEncodedNameAsBytes(), to);
      check("get after a move", cells(t.get(new Get(b("row40")))), "f:q=v40");
      check("moved", loc.getRegionLocation(b("row40"), true).getServerName(), to);
      check("scan after a move", count(t, new Scan()), 93);
    }
  }

  private static void async(Configuration conf, TableName name) throws Exception {
    try (AsyncConnection conn = ConnectionFactory.createAsyncConnection(conf).get(60, TimeUnit.SECONDS)) {
      AsyncTable<AdvancedScanResultConsumer> t = conn.getTable(name);
      t.put(new Put(b("as")).addColumn(b("f"), b("q"), b("1"))).get(60, TimeUnit.SECONDS);
      check("async get", cells(t.get(new Get(b("as"))).get(60, TimeUnit.SECONDS)), "f:q=1");
      List<CompletableFuture<Result>> adds = new ArrayList<>();
      for (int i = 0; i < 50; i++) {
        adds.add(t.increment(new Increment(b("an")).addColumn(b("f"), b("c"), 1)));
      }
      for (CompletableFuture<Result> f : adds) {
        f.get(60, TimeUnit.SECONDS);
      }
      check("async increments",
        Bytes.toLong(t.get(new Get(b("an"))).get(60, TimeUnit.SECONDS).getValue(b("f"), b("c"))), 50L);
      check("async scanAll", t.scanAll(new Scan()).get(60, TimeUnit.SECONDS).size(), 95);
      check("async scanAll reversed", t.scanAll(new Scan().setReversed(true)).get(60, TimeUnit.SECONDS).size(), 95);
      check("async regions", conn.getAdmin().getRegions(name).get(60, TimeUnit.SECONDS).size(), 3);
      check("async tables", conn.getAdmin().listTableNames().get(60, TimeUnit.SECONDS).contains(name), true);
    }
  }
}

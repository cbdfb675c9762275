import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.ClusterMetricsBuilder;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClusterStatusProtos;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonPrimitive;
import org.apache.hbase.thirdparty.com.google.protobuf.Message;

/** Steps that go through Admin; they return when the work is done. */
final class AdminSteps {
  private static final long PATIENCE = TimeUnit.MINUTES.toMillis(1);
  private final Play play;
  private final Admin admin;
  private final TableName table;

  private AdminSteps(Play play, Admin admin, TableName table) {
    this.play = play;
    this.admin = admin;
    this.table = table;
  }

  /** null: no step of this kind. */
  static JsonElement perform(Play p, TableName at, String op, JsonObject s) throws Exception {
    try (Admin admin = p.conn.getAdmin()) {
      AdminSteps steps = new AdminSteps(p, admin, at);
      JsonElement v = steps.question(op, s);
      if (v != null) {
        return Answers.value(v);
      }
      if (op.equals("rpcMaster")) {
        return MasterSteps.call(p, at, s);
      }
      return steps.order(op, s) ? Answers.done() : null;
    }
  }

  private JsonElement question(String op, JsonObject s) throws Exception {
    switch (op) {
      case "tableExists":
        return new JsonPrimitive(admin.tableExists(table));
      case "isTableEnabled":
        return new JsonPrimitive(admin.isTableEnabled(table));
      case "isTableDisabled":
        return new JsonPrimitive(admin.isTableDisabled(table));
      case "isTableAvailable":
        return new JsonPrimitive(admin.isTableAvailable(table));
      case "describeTable":
        return Descriptors.shown(admin.getDescriptor(table));
      case "listTables": {
        List<String> names = new ArrayList<>();
        for (TableName n : admin.listTableNames(Pattern.compile(Notation.text(s, "regex")), Notation.flag(s, "includeSystem", false))) {
          names.add(n.getNameAsString());
        }
        return array(names);
      }
      case "listTablesByNamespace": {
        List<String> names = new ArrayList<>();
        for (TableName n : admin.listTableNamesByNamespace(Notation.text(s, "namespace"))) {
          names.add(n.getNameAsString());
        }
        return array(names);
      }
      case "listNamespaces": {
        Pattern wanted = Pattern.compile(Notation.text(s, "regex"));
        List<String> names = new ArrayList<>();
        for (String n : admin.listNamespaces()) {
          if (wanted.matcher(n).matches()) {
            names.add(n);
          }
        }
        return array(names);
      }
      case "describeNamespace": {
        NamespaceDescriptor d = admin.getNamespaceDescriptor(Notation.text(s, "namespace"));
        JsonObject configuration = new JsonObject();
        new TreeMap<>(d.getConfiguration()).forEach(configuration::addProperty);
        JsonObject o = new JsonObject();
        o.addProperty("name", d.getName());
        o.add("configuration", configuration);
        return o;
      }
      case "listSnapshots": {
        TreeSet<String> names = new TreeSet<>();
        for (SnapshotDescription d : admin.listSnapshots(Pattern.compile(Notation.text(s, "regex")))) {
          names.add(d.getName() + " " + d.getTableNameAsString());
        }
        return array(names);
      }
      case "storeFiles": {
        int n = 0;
        for (RegionMetrics m : Regions.metrics(admin, table)) {
          n += m.getStoreFileCount();
        }
        return new JsonPrimitive(n);
      }
      case "regions":
        return regions();
      case "metaRows":
        return metaRows();
      case "clusterStatusFields":
        return statusFields();
      default:
        return null;
    }
  }

  private boolean order(String op, JsonObject s) throws Exception {
    switch (op) {
      case "sleep":
        Thread.sleep(s.get("ms").getAsLong());
        return true;
      case "createTable":
        if (Notation.flag(s, "bare", false)) {
          MasterSteps.createBare(play, s.getAsJsonObject("descriptor"));
        } else {
          Descriptors.create(admin, s.getAsJsonObject("descriptor"));
        }
        return true;
      case "createTableRange":
        admin.createTable(Descriptors.table(s.getAsJsonObject("descriptor")), Notation.bytes(s, "startKey"), Notation.bytes(s, "endKey"), Notation.number(s, "regions"));
        return true;
      case "deleteTable":
        admin.deleteTable(table);
        return true;
      case "disableTable":
        admin.disableTable(table);
        return true;
      case "enableTable":
        admin.enableTable(table);
        return true;
      case "truncateTable":
        admin.truncateTable(table, Notation.flag(s, "preserveSplits", false));
        return true;
      case "modifyTable":
        admin.modifyTable(Descriptors.table(s.getAsJsonObject("descriptor")));
        return true;
      case "addFamily":
        admin.addColumnFamily(table, Descriptors.family(Notation.text(s, "family"), s.getAsJsonObject("attributes")));
        return true;
      case "modifyFamily":
        admin.modifyColumnFamily(table, Descriptors.family(Notation.text(s, "family"), s.getAsJsonObject("attributes")));
        return true;
      case "deleteFamily":
        admin.deleteColumnFamily(table, Notation.bytes(s, "family"));
        return true;
      case "createNamespace":
        admin.createNamespace(namespace(s));
        return true;
      case "modifyNamespace":
        admin.modifyNamespace(namespace(s));
        return true;
      case "deleteNamespace":
        admin.deleteNamespace(Notation.text(s, "namespace"));
        return true;
      case "snapshot":
        admin.snapshot(Notation.text(s, "name"), table);
        return true;
      case "cloneSnapshot":
        admin.cloneSnapshot(Notation.text(s, "name"), TableName.valueOf(Notation.text(s, "to")));
        return true;
      case "restoreSnapshot":
        admin.restoreSnapshot(Notation.text(s, "name"));
        return true;
      case "deleteSnapshot":
        admin.deleteSnapshot(Notation.text(s, "name"));
        return true;
      case "flush":
        if (s.has("family")) {
          admin.flush(table, Notation.bytes(s, "family"));
        } else {
          admin.flush(table);
        }
        return true;
      case "compact":
        compact(s);
        return true;
      case "majorCompact":
        majorCompact(s);
        return true;
      case "split":
        split(s);
        return true;
      case "merge": {
        List<byte[]> names = new ArrayList<>();
        for (JsonElement row : s.getAsJsonArray("regionsOf")) {
          names.add(Regions.holding(play, table, Notation.bytes(row)).getEncodedNameAsBytes());
        }
        admin.mergeRegionsAsync(names.toArray(new byte[0][]), Notation.flag(s, "force", false)).get(PATIENCE, TimeUnit.MILLISECONDS);
        return true;
      }
      case "move":
        admin.move(Regions.holding(play, table, Notation.bytes(s, "regionOf")).getEncodedNameAsBytes());
        return true;
      case "unassignAssign": {
        byte[] name = Regions.holding(play, table, Notation.bytes(s, "regionOf")).getRegionName();
        admin.unassign(name, true);
        admin.assign(name);
        until("the region is open", () -> admin.isTableAvailable(table));
        return true;
      }
      default:
        return false;
    }
  }

  static void until(String what, Callable<Boolean> holds) throws Exception {
    long end = System.currentTimeMillis() + PATIENCE;
    while (!holds.call()) {
      if (System.currentTimeMillis() > end) {
        throw new IllegalStateException("waited in vain until " + what);
      }
      Thread.sleep(20);
    }
  }

  private static NamespaceDescriptor namespace(JsonObject s) {
    NamespaceDescriptor.Builder b = NamespaceDescriptor.create(Notation.text(s, "namespace"));
    for (Map.Entry<String, JsonElement> e : Descriptors.members(s, "configuration")) {
      b.addConfiguration(e.getKey(), e.getValue().getAsString());
    }
    return b.build();
  }

  private boolean idle() throws Exception {
    return admin.getCompactionState(table) == CompactionState.NONE;
  }

  private void compact(JsonObject s) throws Exception {
    int files = s.has("untilFiles") ? Notation.number(s, "untilFiles") : 1;
    if (s.has("family")) {
      admin.compact(table, Notation.bytes(s, "family"));
    } else {
      admin.compact(table);
    }
    until("files are compacted", () -> {
      for (RegionMetrics m : Regions.metrics(admin, table)) {
        if (m.getStoreFileCount() > files) {
          return false;
        }
      }
      return idle();
    });
  }

  private void majorCompact(JsonObject s) throws Exception {
    if (s.has("family")) {
      admin.majorCompact(table, Notation.bytes(s, "family"));
      // Nothing tells of the end of one family's: not even that it has begun.
      Thread.sleep(1500);
      until("the family is compacted", this::idle);
      return;
    }
    // The time of the last one must be a later millisecond than that of any file before.
    Thread.sleep(15);
    long begin = System.currentTimeMillis();
    admin.majorCompact(table);
    int families = admin.getDescriptor(table).getColumnFamilyCount();
    until("the table is compacted", () -> {
      for (RegionMetrics m : Regions.metrics(admin, table)) {
        int n = m.getStoreFileCount();
        if (n > families || n > 0 && m.getLastMajorCompactionTimestamp() < begin) {
          return false;
        }
      }
      return idle();
    });
  }

  private void split(JsonObject s) throws Exception {
    byte[] at = Notation.bytes(s, "splitRow");
    if (s.has("regionOf")) {
      byte[] name = Regions.holding(play, table, Notation.bytes(s, "regionOf")).getRegionName();
      (at == null ? admin.splitRegionAsync(name) : admin.splitRegionAsync(name, at)).get(PATIENCE, TimeUnit.MILLISECONDS);
      return;
    }
    if (at == null) {
      admin.split(table);
    } else {
      admin.split(table, at);
    }
    if (s.has("untilRegions")) {
      until("there are enough regions", () -> {
        int n = 0;
        for (RegionInfo r : Regions.of(play, table)) {
          n += r.isOffline() || r.isSplit() ? 0 : 1;
        }
        return n == Notation.number(s, "untilRegions");
      });
    }
  }

  private static JsonArray array(Collection<String> names) {
    JsonArray a = new JsonArray();
    names.forEach(a::add);
    return a;
  }

  private JsonElement regions() throws Exception {
    JsonArray all = new JsonArray();
    for (RegionInfo r : Regions.of(play, table)) {
      byte[] hashed = Bytes.add(Bytes.toBytes(table.getNameAsString() + ","), r.getStartKey(), Bytes.toBytes("," + r.getRegionId()));
      String md5 = Bytes.toHex(java.security.MessageDigest.getInstance("MD5").digest(hashed));
      JsonObject o = new JsonObject();
      o.add("startKey", Answers.bytes(r.getStartKey()));
      o.add("endKey", Answers.bytes(r.getEndKey()));
      o.addProperty("encodedIsMd5OfTableStartId", md5.equals(r.getEncodedName()));
      o.addProperty("nameEndsWithDotEncodedDot", r.getRegionNameAsString().endsWith("." + r.getEncodedName() + "."));
      if (r.isOffline()) {
        o.addProperty("offline", true);
      }
      if (r.isSplit()) {
        o.addProperty("split", true);
      }
      all.add(o);
    }
    return all;
  }

  private JsonElement metaRows() throws Exception {
    byte[] info = Bytes.toBytes("info");
    byte[] state = Bytes.toBytes("state");
    JsonObject o = new JsonObject();
    try (Table meta = play.conn.getTable(TableName.META_TABLE_NAME)) {
      byte[] family = Bytes.toBytes("table");
      o.add("tableState", Answers.bytes(meta.get(new Get(table.getName()).addFamily(family)).getValue(family, state)));
      // A hyphen comes right behind the comma: no other table's rows lie in the range.
      Scan rows = new Scan().addFamily(info).withStartRow(Bytes.toBytes(table.getNameAsString() + ",,")).withStopRow(Bytes.toBytes(table.getNameAsString() + "-"));
      JsonArray all = new JsonArray();
      try (ResultScanner rs = meta.getScanner(rows)) {
        for (Result r : rs) {
          TreeSet<String> columns = new TreeSet<>();
          for (Cell c : r.rawCells()) {
            columns.add(Bytes.toStringBinary(CellUtil.cloneQualifier(c)));
          }
          JsonObject one = new JsonObject();
          one.add("columns", array(columns));
          one.add("state", Answers.bytes(r.getValue(info, state)));
          all.add(one);
        }
      }
      o.add("regions", all);
    }
    return o;
  }

  private JsonElement statusFields() throws Exception {
    ClusterStatusProtos.ClusterStatus c = ClusterMetricsBuilder.toClusterStatus(admin.getClusterMetrics());
    JsonObject o = new JsonObject();
    o.add("clusterStatus", fields(c));
    o.add("serverLoad", fields(c.getLiveServers(0).getServerLoad()));
    o.addProperty("liveServers", c.getLiveServersCount());
    o.addProperty("hbaseVersion", c.getHbaseVersion().getVersion());
    return o;
  }

  private static JsonElement fields(Message m) {
    TreeSet<String> names = new TreeSet<>();
    m.getAllFields().keySet().forEach(f -> names.add(f.getName()));
    return array(names);
  }
}

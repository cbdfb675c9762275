import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellBuilderFactory;
import org.apache.hadoop.hbase.CellBuilderType;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.ParseFilter;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonNull;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** Steps as the client's request objects. */
final class Requests {
  private final long t0;

  Requests(long t0) {
    this.t0 = t0;
  }

  private long time(JsonElement e) {
    return Notation.time(e, t0);
  }

  private long from(JsonObject s, String key) {
    return time(s.getAsJsonArray(key).get(0));
  }

  private long to(JsonObject s, String key) {
    return time(s.getAsJsonArray(key).get(1));
  }

  private interface Column {
    void add(byte[] family, byte[] qualifier);
  }

  /** Calls whole for families of which everything is wanted, part for single columns. */
  private static void columns(JsonObject s, java.util.function.Consumer<byte[]> whole, Column part) {
    for (Map.Entry<String, JsonElement> f : Descriptors.members(s, "families")) {
      byte[] family = Bytes.toBytesBinary(f.getKey());
      if (f.getValue().isJsonNull()) {
        whole.accept(family);
      } else {
        f.getValue().getAsJsonArray().forEach(q -> part.add(family, Notation.bytes(q)));
      }
    }
  }

  Get get(JsonObject s) throws Exception {
    Get g = new Get(Notation.bytes(s, "row"));
    columns(s, g::addFamily, g::addColumn);
    if (s.has("maxVersions")) {
      g.readVersions(Notation.number(s, "maxVersions"));
    }
    if (Notation.flag(s, "allVersions", false)) {
      g.readAllVersions();
    }
    if (s.has("timeRange")) {
      g.setTimeRange(from(s, "timeRange"), to(s, "timeRange"));
    }
    if (s.has("timestamp")) {
      g.setTimestamp(time(s.get("timestamp")));
    }
    if (s.has("storeLimit")) {
      g.setMaxResultsPerColumnFamily(Notation.number(s, "storeLimit"));
    }
    if (s.has("storeOffset")) {
      g.setRowOffsetPerColumnFamily(Notation.number(s, "storeOffset"));
    }
    if (Notation.flag(s, "existsOnly", false)) {
      g.setCheckExistenceOnly(true);
    }
    query(s, g);
    return g;
  }

  Scan scan(JsonObject s) throws Exception {
    Scan c = new Scan();
    if (s.has("startRow")) {
      c.withStartRow(Notation.bytes(s, "startRow"), Notation.flag(s, "includeStartRow", true));
    }
    if (s.has("stopRow")) {
      c.withStopRow(Notation.bytes(s, "stopRow"), Notation.flag(s, "includeStopRow", false));
    }
    if (s.has("rowPrefix")) {
      c.setStartStopRowForPrefixScan(Notation.bytes(s, "rowPrefix"));
    }
    columns(s, c::addFamily, c::addColumn);
    if (s.has("maxVersions")) {
      c.readVersions(Notation.number(s, "maxVersions"));
    }
    if (Notation.flag(s, "allVersions", false)) {
      c.readAllVersions();
    }
    if (Notation.flag(s, "raw", false)) {
      c.setRaw(true);
    }
    if (Notation.flag(s, "reversed", false)) {
      c.setReversed(true);
    }
    if (s.has("limit")) {
      c.setLimit(Notation.number(s, "limit"));
    }
    if (Notation.flag(s, "oneRow", false)) {
      c.setOneRowLimit();
    }
    if (s.has("caching")) {
      c.setCaching(Notation.number(s, "caching"));
    }
    if (s.has("maxResultSize")) {
      c.setMaxResultSize(s.get("maxResultSize").getAsLong());
    }
    if (s.has("allowPartial")) {
      c.setAllowPartialResults(Notation.flag(s, "allowPartial", false));
    }
    if (s.has("storeLimit")) {
      c.setMaxResultsPerColumnFamily(Notation.number(s, "storeLimit"));
    }
    if (s.has("storeOffset")) {
      c.setRowOffsetPerColumnFamily(Notation.number(s, "storeOffset"));
    }
    if (s.has("timeRange")) {
      c.setTimeRange(from(s, "timeRange"), to(s, "timeRange"));
    }
    if (s.has("timestamp")) {
      c.setTimestamp(time(s.get("timestamp")));
    }
    if (s.has("readType")) {
      c.setReadType(Scan.ReadType.valueOf(Notation.text(s, "readType")));
    }
    // The client looks at batch and filter together when the second of them is set, and only if that
    // is the batch.
    boolean early = Notation.flag(s, "batchFirst", false);
    if (s.has("batch") && early) {
      c.setBatch(Notation.number(s, "batch"));
    }
    query(s, c);
    if (s.has("batch") && !early) {
      c.setBatch(Notation.number(s, "batch"));
    }
    return c;
  }

  private void query(JsonObject s, Query q) throws Exception {
    if (s.has("filter")) {
      Filter f = FilterTrees.filter(s.getAsJsonObject("filter"), t0);
      if (s.has("filterString")) {
        Filter parsed = new ParseFilter().parseFilterString(Notation.text(s, "filterString"));
        if (!FilterTrees.sent(parsed).equals(FilterTrees.sent(f))) {
          throw new IllegalStateException("filterString says something else: " + FilterTrees.tree(parsed));
        }
      }
      q.setFilter(f);
    }
    for (Map.Entry<String, JsonElement> e : Descriptors.members(s, "familyTimeRanges")) {
      JsonObject ranges = s.getAsJsonObject("familyTimeRanges");
      q.setColumnFamilyTimeRange(Bytes.toBytesBinary(e.getKey()), from(ranges, e.getKey()), to(ranges, e.getKey()));
    }
    if (s.has("loadOnDemand")) {
      q.setLoadColumnFamiliesOnDemand(Notation.flag(s, "loadOnDemand", false));
    }
    if (s.has("isolation")) {
      q.setIsolationLevel(IsolationLevel.valueOf(Notation.text(s, "isolation")));
    }
  }

  Mutation mutation(JsonObject s) throws Exception {
    Row r = row(s);
    if (r instanceof Mutation) {
      return (Mutation) r;
    }
    throw new Inexpressible(Notation.text(s, "op") + " as a mutation");
  }

  /** Any action of a batch. */
  Row row(JsonObject s) throws Exception {
    switch (Notation.text(s, "op")) {
      case "get":
        return get(s);
      case "put":
        return put(s);
      case "delete":
        return delete(s);
      case "increment":
        return increment(s);
      case "append":
        return append(s);
      case "mutateRow":
        return rowMutations(s);
      case "checkAndMutate":
        return check(s);
      default:
        throw new Inexpressible(Notation.text(s, "op") + " as an action");
    }
  }

  private static <M extends Mutation> M options(JsonObject s, M m) {
    if (s.has("ttl")) {
      m.setTTL(s.get("ttl").getAsLong());
    }
    if (s.has("durability")) {
      m.setDurability(Durability.valueOf(Notation.text(s, "durability")));
    }
    return m;
  }

  private Put put(JsonObject s) {
    byte[] row = Notation.bytes(s, "row");
    Put p = s.has("ts") ? new Put(row, time(s.get("ts"))) : new Put(row);
    for (JsonElement e : s.getAsJsonArray("cells")) {
      JsonArray c = e.getAsJsonArray();
      byte[] family = Notation.bytes(c.get(0));
      byte[] qualifier = Notation.bytes(c.get(1));
      byte[] value = Notation.bytes(c.get(3));
      if (c.get(2).isJsonNull()) {
        p.addColumn(family, qualifier, value);
      } else {
        p.addColumn(family, qualifier, time(c.get(2)), value);
      }
    }
    return options(s, p);
  }

  private Delete delete(JsonObject s) {
    byte[] row = Notation.bytes(s, "row");
    Delete d = s.has("ts") ? new Delete(row, time(s.get("ts"))) : new Delete(row);
    for (JsonElement e : Play.list(s, "items")) {
      JsonArray i = e.getAsJsonArray();
      String kind = i.get(0).getAsString();
      byte[] family = Notation.bytes(i.get(1));
      byte[] qualifier = i.size() > 2 ? Notation.bytes(i.get(2)) : null;
      JsonElement at = i.size() > 3 ? i.get(3) : JsonNull.INSTANCE;
      boolean timed = !at.isJsonNull();
      switch (kind) {
        case "version":
          if (timed) {
            d.addColumn(family, qualifier, time(at));
          } else {
            d.addColumn(family, qualifier);
          }
          break;
        case "column":
          if (timed) {
            d.addColumns(family, qualifier, time(at));
          } else {
            d.addColumns(family, qualifier);
          }
          break;
        case "family":
          if (timed) {
            d.addFamily(family, time(at));
          } else {
            d.addFamily(family);
          }
          break;
        case "familyVersion":
          d.addFamilyVersion(family, time(at));
          break;
        default:
          throw new Inexpressible("delete of a " + kind);
      }
    }
    return options(s, d);
  }

  private Increment increment(JsonObject s) throws Exception {
    byte[] row = Notation.bytes(s, "row");
    Increment inc = new Increment(row);
    if (s.has("ts")) {
      inc.setTimestamp(time(s.get("ts")));
    }
    for (JsonElement e : s.getAsJsonArray("cells")) {
      JsonArray c = e.getAsJsonArray();
      if (c.get(2).getAsJsonPrimitive().isString()) {
        // An amount of any width.
        inc.add(CellBuilderFactory.create(CellBuilderType.DEEP_COPY).setRow(row).setFamily(Notation.bytes(c.get(0)))
          .setQualifier(Notation.bytes(c.get(1))).setTimestamp(HConstants.LATEST_TIMESTAMP).setType(Cell.Type.Put)
          .setValue(Notation.bytes(c.get(2))).build());
      } else {
        inc.addColumn(Notation.bytes(c.get(0)), Notation.bytes(c.get(1)), c.get(2).getAsLong());
      }
    }
    if (s.has("timeRange")) {
      inc.setTimeRange(from(s, "timeRange"), to(s, "timeRange"));
    }
    if (s.has("returnResults")) {
      inc.setReturnResults(Notation.flag(s, "returnResults", true));
    }
    return options(s, inc);
  }

  private Append append(JsonObject s) throws Exception {
    Append app = new Append(Notation.bytes(s, "row"));
    if (s.has("ts")) {
      app.setTimestamp(time(s.get("ts")));
    }
    for (JsonElement e : s.getAsJsonArray("cells")) {
      JsonArray c = e.getAsJsonArray();
      app.addColumn(Notation.bytes(c.get(0)), Notation.bytes(c.get(1)), Notation.bytes(c.get(2)));
    }
    if (s.has("timeRange")) {
      app.setTimeRange(from(s, "timeRange"), to(s, "timeRange"));
    }
    if (s.has("returnResults")) {
      app.setReturnResults(Notation.flag(s, "returnResults", true));
    }
    return options(s, app);
  }

  RowMutations rowMutations(JsonObject s) throws Exception {
    List<Mutation> all = new ArrayList<>();
    for (JsonElement e : s.getAsJsonArray("mutations")) {
      all.add(mutation(e.getAsJsonObject()));
    }
    return new RowMutations(Notation.bytes(s, "row")).add(all);
  }

  CheckAndMutate check(JsonObject s) throws Exception {
    JsonObject c = s.getAsJsonObject("condition");
    CheckAndMutate.Builder b = CheckAndMutate.newBuilder(Notation.bytes(s, "row"));
    if (c.has("filter")) {
      b.ifMatches(FilterTrees.filter(c.getAsJsonObject("filter"), t0));
    } else if (c.has("ifNotExists")) {
      b.ifNotExists(Notation.bytes(c, "family"), Notation.bytes(c, "qualifier"));
    } else {
      b.ifMatches(Notation.bytes(c, "family"), Notation.bytes(c, "qualifier"), CompareOperator.valueOf(Notation.text(c, "op")), Notation.bytes(c, "value"));
    }
    if (c.has("timeRange")) {
      b.timeRange(TimeRange.between(from(c, "timeRange"), to(c, "timeRange")));
    }
    JsonObject m = s.getAsJsonObject("mutation");
    if (!m.has("row")) {
      JsonObject whole = new JsonObject();
      m.entrySet().forEach(e -> whole.add(e.getKey(), e.getValue()));
      whole.add("row", s.get("row"));
      m = whole;
    }
    Row r = row(m);
    if (r instanceof Put) {
      return b.build((Put) r);
    }
    if (r instanceof Delete) {
      return b.build((Delete) r);
    }
    if (r instanceof Increment) {
      return b.build((Increment) r);
    }
    return r instanceof Append ? b.build((Append) r) : b.build((RowMutations) r);
  }
}

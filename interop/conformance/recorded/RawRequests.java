import java.util.Map;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ComparatorProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.FilterProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;
import org.apache.hbase.thirdparty.com.google.protobuf.UnsafeByteOperations;

/** Requests as messages, field by field: what the client's own objects would not say. */
final class RawRequests {
  private final Play play;

  RawRequests(Play play) {
    this.play = play;
  }

  static ByteString string(byte[] b) {
    return UnsafeByteOperations.unsafeWrap(b);
  }

  private long time(JsonElement e) {
    return Notation.time(e, play.t0);
  }

  private HBaseProtos.TimeRange range(JsonObject o) {
    JsonArray r = o.getAsJsonArray("timeRange");
    return HBaseProtos.TimeRange.newBuilder().setFrom(time(r.get(0))).setTo(time(r.get(1))).build();
  }

  HBaseProtos.RegionSpecifier region(TableName table, JsonObject s) throws Exception {
    String kind = s.has("specifier") ? Notation.text(s, "specifier") : "REGION_NAME";
    byte[] name = Notation.bytes(s, "regionName");
    if (name == null) {
      org.apache.hadoop.hbase.client.RegionInfo r = Regions.holding(play, table, s.has("regionOf") ? Notation.bytes(s, "regionOf") : new byte[0]);
      name = kind.equals("ENCODED_REGION_NAME") ? r.getEncodedNameAsBytes() : r.getRegionName();
    }
    return HBaseProtos.RegionSpecifier.newBuilder().setType(HBaseProtos.RegionSpecifier.RegionSpecifierType.valueOf(kind)).setValue(string(name)).build();
  }

  private FilterProtos.Filter filter(JsonObject o) throws Exception {
    if (o.has("rawFilter")) {
      JsonObject raw = o.getAsJsonObject("rawFilter");
      return FilterProtos.Filter.newBuilder().setName(Notation.text(raw, "name")).setSerializedFilter(string(Bytes.fromHex(Notation.text(raw, "hex")))).build();
    }
    return o.has("filter") ? ProtobufUtil.toFilter(FilterTrees.filter(o.getAsJsonObject("filter"), play.t0)) : null;
  }

  /** otherwise is the row of a condition that names none. */
  ClientProtos.Condition condition(JsonObject c, byte[] otherwise) throws Exception {
    ClientProtos.Condition.Builder b = ClientProtos.Condition.newBuilder();
    b.setRow(string(c.has("row") ? Notation.bytes(c, "row") : otherwise));
    if (c.has("family")) {
      b.setFamily(string(Notation.bytes(c, "family")));
    }
    if (c.has("qualifier")) {
      b.setQualifier(string(Notation.bytes(c, "qualifier")));
    }
    if (c.has("op")) {
      b.setCompareType(HBaseProtos.CompareType.valueOf(Notation.text(c, "op")));
    }
    if (c.has("rawComparator")) {
      JsonObject raw = c.getAsJsonObject("rawComparator");
      b.setComparator(ComparatorProtos.Comparator.newBuilder().setName(Notation.text(raw, "name"))
        .setSerializedComparator(string(Bytes.fromHex(Notation.text(raw, "hex")))));
    } else if (c.has("comparator")) {
      b.setComparator(ProtobufUtil.toComparator(FilterTrees.comparator(c.getAsJsonObject("comparator"))));
    }
    FilterProtos.Filter f = filter(c);
    if (f != null) {
      b.setFilter(f);
    }
    if (c.has("timeRange")) {
      b.setTimeRange(range(c));
    }
    return b.build();
  }

  ClientProtos.MutationProto.Builder mutation(JsonObject m) {
    ClientProtos.MutationProto.Builder b = ClientProtos.MutationProto.newBuilder();
    b.setMutateType(ClientProtos.MutationProto.MutationType.valueOf(Notation.text(m, "type")));
    if (m.has("row")) {
      b.setRow(string(Notation.bytes(m, "row")));
    }
    if (m.has("ts")) {
      b.setTimestamp(time(m.get("ts")));
    }
    if (m.has("nonce")) {
      b.setNonce(m.get("nonce").getAsLong());
    }
    for (Map.Entry<String, JsonElement> a : Descriptors.members(m, "attributes")) {
      b.addAttribute(HBaseProtos.NameBytesPair.newBuilder().setName(a.getKey()).setValue(string(Notation.bytes(a.getValue()))));
    }
    for (JsonElement e : Play.list(m, "columns")) {
      JsonArray c = e.getAsJsonArray();
      ClientProtos.MutationProto.ColumnValue.QualifierValue.Builder v = ClientProtos.MutationProto.ColumnValue.QualifierValue.newBuilder();
      if (!c.get(1).isJsonNull()) {
        v.setQualifier(string(Notation.bytes(c.get(1))));
      }
      if (!c.get(2).isJsonNull()) {
        v.setTimestamp(time(c.get(2)));
      }
      if (!c.get(3).isJsonNull()) {
        v.setValue(string(Notation.bytes(c.get(3))));
      }
      if (c.size() > 4) {
        v.setDeleteType(ClientProtos.MutationProto.DeleteType.valueOf(c.get(4).getAsString()));
      }
      b.addColumnValue(ClientProtos.MutationProto.ColumnValue.newBuilder().setFamily(string(Notation.bytes(c.get(0)))).addQualifierValue(v));
    }
    return b;
  }

  ClientProtos.Get get(JsonObject g) throws Exception {
    ClientProtos.Get.Builder b = ClientProtos.Get.newBuilder().setRow(string(Notation.bytes(g, "row")));
    for (Map.Entry<String, JsonElement> f : Descriptors.members(g, "families")) {
      ClientProtos.Column.Builder c = ClientProtos.Column.newBuilder().setFamily(string(Bytes.toBytesBinary(f.getKey())));
      if (!f.getValue().isJsonNull()) {
        f.getValue().getAsJsonArray().forEach(q -> c.addQualifier(string(Notation.bytes(q))));
      }
      b.addColumn(c);
    }
    if (g.has("maxVersions")) {
      b.setMaxVersions(Notation.number(g, "maxVersions"));
    }
    if (g.has("existsOnly")) {
      b.setExistenceOnly(Notation.flag(g, "existsOnly", false));
    }
    if (g.has("closestRowBefore")) {
      b.setClosestRowBefore(Notation.flag(g, "closestRowBefore", false));
    }
    if (g.has("timeRange")) {
      b.setTimeRange(range(g));
    }
    FilterProtos.Filter f = filter(g);
    if (f != null) {
      b.setFilter(f);
    }
    return b.build();
  }

  ClientProtos.Scan.Builder scan(JsonObject s) throws Exception {
    Scan c = new Requests(play.t0).scan(s);
    ClientProtos.Scan.Builder b = ProtobufUtil.toScan(c).toBuilder();
    if (Notation.flag(s, "omitIncludeStopRow", false)) {
      b.clearIncludeStopRow();
    }
    if (s.has("explicitIncludeStopRow")) {
      b.setIncludeStopRow(Notation.flag(s, "explicitIncludeStopRow", false));
    }
    if (s.has("needCursor")) {
      b.setNeedCursorResult(true);
    }
    if (s.has("rawFilter")) {
      b.setFilter(filter(s));
    }
    return b;
  }
}

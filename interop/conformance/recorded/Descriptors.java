import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** Tables and families, from the files and back. */
final class Descriptors {
  private Descriptors() {
  }

  static TableDescriptor table(JsonObject def) {
    TableDescriptorBuilder t = TableDescriptorBuilder.newBuilder(TableName.valueOf(Notation.text(def, "name")));
    for (Map.Entry<String, JsonElement> a : members(def, "attributes")) {
      t.setValue(a.getKey(), a.getValue().getAsString());
    }
    for (Map.Entry<String, JsonElement> f : members(def, "families")) {
      t.setColumnFamily(family(f.getKey(), f.getValue().getAsJsonObject()));
    }
    return t.build();
  }

  static ColumnFamilyDescriptor family(String name, JsonObject attributes) {
    ColumnFamilyDescriptorBuilder f = ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytesBinary(name));
    attributes.entrySet().forEach(a -> f.setValue(a.getKey(), a.getValue().getAsString()));
    return f.build();
  }

  static Iterable<Map.Entry<String, JsonElement>> members(JsonObject o, String key) {
    return o.has(key) ? o.getAsJsonObject(key).entrySet() : java.util.Collections.emptySet();
  }

  static void create(Admin admin, JsonObject def) throws IOException {
    List<byte[]> splits = new ArrayList<>();
    for (JsonElement s : Play.list(def, "splits")) {
      splits.add(Notation.bytes(s));
    }
    if (splits.isEmpty()) {
      admin.createTable(table(def));
    } else {
      admin.createTable(table(def), splits.toArray(new byte[0][]));
    }
  }

  /** A descriptor as it is sent. */
  static JsonObject shown(TableDescriptor d) {
    HBaseProtos.TableSchema sent = ProtobufUtil.toTableSchema(d);
    JsonObject o = new JsonObject();
    o.addProperty("name", d.getTableName().getNameAsString());
    o.add("attributes", sorted(sent.getAttributesList(), sent.getConfigurationList()));
    JsonObject families = new JsonObject();
    for (HBaseProtos.ColumnFamilySchema f : sent.getColumnFamiliesList()) {
      families.add(Bytes.toStringBinary(f.getName().toByteArray()), sorted(f.getAttributesList(), f.getConfigurationList()));
    }
    o.add("families", families);
    return o;
  }

  private static JsonObject sorted(List<HBaseProtos.BytesBytesPair> attributes, List<HBaseProtos.NameStringPair> configuration) {
    Map<String, String> all = new TreeMap<>();
    attributes.forEach(p -> all.put(Bytes.toStringBinary(p.getFirst().toByteArray()), Bytes.toStringBinary(p.getSecond().toByteArray())));
    configuration.forEach(p -> all.put("configuration:" + p.getName(), p.getValue()));
    JsonObject o = new JsonObject();
    all.forEach(o::addProperty);
    return o;
  }
}

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.ParseFilter;
import org.apache.hadoop.hbase.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** Steps that go through Table, as an application's do, and those on filters alone. */
final class DataSteps {
  private DataSteps() {
  }

  /** null: no step of this kind. */
  static JsonElement perform(Play p, TableName at, String op, JsonObject s) throws Exception {
    Requests as = new Requests(p.t0);
    switch (op) {
      case "parseFilter": {
        Filter f = new ParseFilter().parseFilterString(Notation.text(s, "input"));
        JsonObject o = withWire(new JsonObject(), f);
        o.add("filter", FilterTrees.tree(f));
        return o;
      }
      case "encodeFilter":
        return withWire(new JsonObject(), FilterTrees.filter(s.getAsJsonObject("filter"), p.t0));
      case "put":
      case "delete":
      case "get":
      case "exists":
      case "increment":
      case "append":
      case "mutateRow":
      case "checkAndMutate":
      case "scan":
      case "batch":
      case "multiRow":
        break;
      default:
        return null;
    }
    try (Table t = p.conn.getTable(at)) {
      switch (op) {
        case "put":
          t.put((org.apache.hadoop.hbase.client.Put) as.row(s));
          return Answers.done();
        case "delete":
          t.delete((org.apache.hadoop.hbase.client.Delete) as.row(s));
          return Answers.done();
        case "get": {
          Get g = as.get(s);
          return withWire(Answers.result(t.get(g)), g.getFilter());
        }
        case "exists":
          return Answers.value(t.exists(as.get(s)));
        case "increment":
          return Answers.result(t.increment((org.apache.hadoop.hbase.client.Increment) as.row(s)));
        case "append":
          return Answers.result(t.append((org.apache.hadoop.hbase.client.Append) as.row(s)));
        case "mutateRow":
          return Answers.result(t.mutateRow(as.rowMutations(s)));
        case "checkAndMutate":
          return Answers.checked(t.checkAndMutate(as.check(s)));
        case "scan":
          return scan(t, as.scan(s));
        case "batch":
          return batch(t, as, s);
        default:
          return multiRow(t, as, p, s);
      }
    }
  }

  private static JsonObject withWire(JsonObject o, Filter f) throws Exception {
    if (f != null) {
      o.add("filterWire", FilterTrees.sent(f));
    }
    return o;
  }

  private static JsonElement scan(Table t, Scan c) throws Exception {
    JsonArray all = new JsonArray();
    try (ResultScanner rs = t.getScanner(c)) {
      for (Result r : rs) {
        all.add(Answers.result(r));
      }
    } catch (java.io.UncheckedIOException e) {
      throw e.getCause();
    }
    JsonObject o = new JsonObject();
    o.add("results", all);
    return withWire(o, c.getFilter());
  }

  private static JsonElement batch(Table t, Requests as, JsonObject s) throws Exception {
    List<Row> rows = new ArrayList<>();
    for (JsonElement e : s.getAsJsonArray("actions")) {
      rows.add(as.row(e.getAsJsonObject()));
    }
    Object[] outcomes = new Object[rows.size()];
    JsonObject o = new JsonObject();
    try {
      t.batch(rows, outcomes);
    } catch (RetriesExhaustedWithDetailsException e) {
      o.addProperty("failed", e.getNumExceptions());
    }
    JsonArray all = new JsonArray();
    for (Object x : outcomes) {
      all.add(Answers.outcome(x));
    }
    o.add("actions", all);
    return o;
  }

  private static JsonElement multiRow(Table t, Requests as, Play p, JsonObject s) throws Exception {
    MultiRowMutationProtos.MutateRowsRequest.Builder q = MultiRowMutationProtos.MutateRowsRequest.newBuilder();
    byte[] via = Notation.bytes(s, "via");
    for (JsonElement e : s.getAsJsonArray("mutations")) {
      Mutation m = as.mutation(e.getAsJsonObject());
      String type = m.getClass().getSimpleName().toUpperCase(java.util.Locale.ROOT);
      q.addMutationRequest(ProtobufUtil.toMutation(ClientProtos.MutationProto.MutationType.valueOf(type), m));
      if (via == null) {
        via = m.getRow();
      }
    }
    for (JsonElement e : Play.list(s, "conditions")) {
      // Endpoints speak the unshaded protobuf.
      q.addCondition(ClientProtos.Condition.parseFrom(new RawRequests(p).condition(e.getAsJsonObject(), null).toByteArray()));
    }
    JsonObject o = new JsonObject();
    o.addProperty("processed", MultiRowMutationProtos.MultiRowMutationService.newBlockingStub(t.coprocessorService(via)).mutateRows(null, q.build()).getProcessed());
    return o;
  }
}

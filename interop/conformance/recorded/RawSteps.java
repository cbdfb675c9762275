import org.apache.hadoop.hbase.CellScanner;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ClusterConnection;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.ipc.HBaseRpcControllerImpl;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.ResponseConverter;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonNull;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** Steps that are one call of a region server through the client's stub. */
final class RawSteps {
  private static final int TIMEOUT = 60_000;
  private final Play play;
  private final TableName table;
  private final RawRequests as;

  private RawSteps(Play play, TableName table) {
    this.play = play;
    this.table = table;
    this.as = new RawRequests(play);
  }

  /** null: no step of this kind. */
  static JsonElement perform(Play p, TableName at, String op, JsonObject s) throws Exception {
    RawSteps raw = new RawSteps(p, at);
    switch (op) {
      case "rpcGet":
        return raw.get(s);
      case "rpcMutate":
        return raw.mutate(s);
      case "rpcMulti":
        return raw.multi(s);
      case "rpcScan":
        return raw.scan(s);
      default:
        return null;
    }
  }

  private static HBaseRpcControllerImpl controller() {
    HBaseRpcControllerImpl c = new HBaseRpcControllerImpl();
    c.setCallTimeout(TIMEOUT);
    return c;
  }

  /** The one server there is. */
  private ClientProtos.ClientService.BlockingInterface server() throws Exception {
    try (Admin admin = play.conn.getAdmin()) {
      return ((ClusterConnection) play.conn).getClient(admin.getRegionServers().iterator().next());
    }
  }

  /** Any number, as long as it is this case's alone. */
  private long nonceGroup() {
    return play.t0 * 31 + table.hashCode();
  }

  private static JsonElement result(ClientProtos.Result r, CellScanner block) throws Exception {
    JsonObject o = new JsonObject();
    o.addProperty("associatedCellCount", r.getAssociatedCellCount());
    if (r.hasExists()) {
      o.addProperty("exists", r.getExists());
    }
    o.add("cells", Answers.cells(ProtobufUtil.toResult(r, block).rawCells()));
    return o;
  }

  private JsonElement get(JsonObject s) throws Exception {
    HBaseRpcControllerImpl c = controller();
    ClientProtos.GetResponse r = server().get(c,
      ClientProtos.GetRequest.newBuilder().setRegion(as.region(table, s)).setGet(as.get(s.getAsJsonObject("get"))).build());
    JsonObject o = new JsonObject();
    o.add("result", r.hasResult() ? result(r.getResult(), c.cellScanner()) : JsonNull.INSTANCE);
    return o;
  }

  private JsonElement mutate(JsonObject s) throws Exception {
    JsonObject m = s.getAsJsonObject("mutation");
    ClientProtos.MutationProto.Builder mutation = as.mutation(m);
    ClientProtos.MutateRequest.Builder q = ClientProtos.MutateRequest.newBuilder().setRegion(as.region(table, s));
    if (s.has("nonce")) {
      q.setNonceGroup(nonceGroup());
      mutation.setNonce(s.get("nonce").getAsLong());
    }
    q.setMutation(mutation);
    if (s.has("condition")) {
      q.setCondition(as.condition(s.getAsJsonObject("condition"), Notation.bytes(m, "row")));
    }
    HBaseRpcControllerImpl c = controller();
    ClientProtos.MutateResponse r = server().mutate(c, q.build());
    JsonObject o = new JsonObject();
    if (r.hasProcessed()) {
      o.addProperty("processed", r.getProcessed());
    }
    o.add("result", r.hasResult() ? result(r.getResult(), c.cellScanner()) : JsonNull.INSTANCE);
    return o;
  }

  private JsonElement multi(JsonObject s) throws Exception {
    ClientProtos.MultiRequest.Builder q = ClientProtos.MultiRequest.newBuilder();
    for (JsonElement e : s.getAsJsonArray("regionActions")) {
      JsonObject a = e.getAsJsonObject();
      ClientProtos.RegionAction.Builder ra = ClientProtos.RegionAction.newBuilder().setRegion(as.region(table, a));
      if (a.has("atomic")) {
        ra.setAtomic(Notation.flag(a, "atomic", false));
      }
      if (a.has("condition")) {
        ra.setCondition(as.condition(a.getAsJsonObject("condition"), null));
      }
      for (JsonElement x : a.getAsJsonArray("actions")) {
        JsonObject action = x.getAsJsonObject();
        ClientProtos.Action.Builder b = ClientProtos.Action.newBuilder().setIndex(ra.getActionCount());
        if (action.has("get")) {
          b.setGet(as.get(action.getAsJsonObject("get")));
        } else {
          b.setMutation(as.mutation(action.getAsJsonObject("mutation")));
        }
        ra.addAction(b);
      }
      q.addRegionAction(ra);
    }
    if (s.has("condition")) {
      q.setCondition(as.condition(s.getAsJsonObject("condition"), null));
    }
    if (Notation.flag(s, "nonceGroup", false)) {
      q.setNonceGroup(nonceGroup());
    }
    HBaseRpcControllerImpl c = controller();
    ClientProtos.MultiResponse r = server().multi(c, q.build());
    JsonObject o = new JsonObject();
    if (r.hasProcessed()) {
      o.addProperty("processed", r.getProcessed());
    }
    JsonArray regions = new JsonArray();
    for (ClientProtos.RegionActionResult rr : r.getRegionActionResultList()) {
      regions.add(regionAnswer(rr, c.cellScanner()));
    }
    o.add("regions", regions);
    return o;
  }

  private static JsonObject regionAnswer(ClientProtos.RegionActionResult rr, CellScanner block) throws Exception {
    JsonObject o = new JsonObject();
    if (rr.hasProcessed()) {
      o.addProperty("processed", rr.getProcessed());
    }
    if (rr.hasException()) {
      o.add("regionException", named(rr.getException()));
    }
    JsonArray results = new JsonArray();
    for (ClientProtos.ResultOrException x : rr.getResultOrExceptionList()) {
      JsonObject one = new JsonObject();
      one.addProperty("index", x.getIndex());
      if (x.hasException()) {
        one.add("exception", named(x.getException()));
      } else if (x.hasResult()) {
        one.add("result", result(x.getResult(), block));
      }
      results.add(one);
    }
    o.add("results", results);
    return o;
  }

  private static JsonObject named(HBaseProtos.NameBytesPair p) {
    JsonObject o = new JsonObject();
    o.addProperty("error", p.getName());
    o.addProperty("message", p.getValue().toStringUtf8());
    return o;
  }

  /** A scanner's calls one by one, and other steps between them. */
  private JsonElement scan(JsonObject s) throws Exception {
    JsonArray answers = new JsonArray();
    long id = 0;
    long next = 0;
    long readPoint = -1;
    for (JsonElement e : s.getAsJsonArray("calls")) {
      JsonObject call = e.getAsJsonObject();
      if (call.has("do")) {
        JsonObject did = new JsonObject();
        did.add("did", play.perform(call.getAsJsonObject("do")));
        answers.add(did);
        continue;
      }
      boolean open = Notation.flag(call, "open", id == 0);
      HBaseRpcControllerImpl c = controller();
      try {
        ClientProtos.ScanRequest.Builder q = ClientProtos.ScanRequest.newBuilder();
        q.setClientHandlesPartials(Notation.flag(call, "clientHandlesPartials", true));
        q.setClientHandlesHeartbeats(Notation.flag(call, "clientHandlesHeartbeats", true));
        if (open) {
          ClientProtos.Scan.Builder b = as.scan(s.getAsJsonObject("scan"));
          if (Notation.flag(call, "reuseReadPoint", false)) {
            b.setMvccReadPoint(readPoint);
          }
          q.setRegion(as.region(table, s)).setScan(b);
        } else {
          q.setScannerId(call.has("scannerId") ? call.get("scannerId").getAsLong() : id);
        }
        if (call.has("nextCallSeq")) {
          q.setNextCallSeq(call.get("nextCallSeq").getAsLong());
        } else if (!open) {
          q.setNextCallSeq(next);
        }
        if (call.has("numberOfRows")) {
          q.setNumberOfRows(Notation.number(call, "numberOfRows"));
        }
        if (call.has("limitOfRows")) {
          q.setLimitOfRows(Notation.number(call, "limitOfRows"));
        }
        if (call.has("close")) {
          q.setCloseScanner(Notation.flag(call, "close", false));
        }
        if (call.has("renew")) {
          q.setRenew(Notation.flag(call, "renew", false));
        }
        ClientProtos.ScanResponse r = server().scan(c, q.build());
        if (r.hasMvccReadPoint()) {
          readPoint = r.getMvccReadPoint();
        }
        if (open) {
          id = r.getScannerId();
          next = 0;
        } else if (!call.has("nextCallSeq")) {
          next++;
        }
        answers.add(scanAnswer(r, c.cellScanner()));
      } catch (Inexpressible x) {
        throw x;
      } catch (Throwable t) {
        answers.add(Answers.error(t, Notation.flag(s, "wireError", false)));
      }
    }
    JsonObject o = new JsonObject();
    o.add("calls", answers);
    return o;
  }

  private static JsonObject scanAnswer(ClientProtos.ScanResponse r, CellScanner block) throws Exception {
    JsonObject o = new JsonObject();
    JsonArray results = new JsonArray();
    Result[] got = ResponseConverter.getResults(block, r);
    for (int i = 0; got != null && i < got.length; i++) {
      JsonObject one = new JsonObject();
      one.add("cells", Answers.cells(got[i].rawCells()));
      one.addProperty("partial", i < r.getPartialFlagPerResultCount() && r.getPartialFlagPerResult(i));
      results.add(one);
    }
    o.add("results", results);
    o.addProperty("moreResults", r.getMoreResults());
    if (r.hasMoreResultsInRegion()) {
      o.addProperty("moreResultsInRegion", r.getMoreResultsInRegion());
    }
    o.addProperty("hasScannerId", r.hasScannerId());
    o.addProperty("hasTtl", r.hasTtl());
    o.addProperty("hasMvccReadPoint", r.hasMvccReadPoint());
    if (r.hasHeartbeatMessage()) {
      o.addProperty("heartbeat", r.getHeartbeatMessage());
    }
    if (r.hasCursor()) {
      o.addProperty("cursor", Bytes.toStringBinary(r.getCursor().getRow().toByteArray()));
    }
    if (r.hasStale()) {
      o.addProperty("stale", r.getStale());
    }
    JsonArray counts = new JsonArray();
    r.getCellsPerResultList().forEach(counts::add);
    o.add("cellsPerResult", counts);
    return o;
  }
}

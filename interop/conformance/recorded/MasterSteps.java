import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ClusterConnection;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.ipc.HBaseRpcControllerImpl;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.protobuf.BlockingService;
import org.apache.hbase.thirdparty.com.google.protobuf.Descriptors.FieldDescriptor;
import org.apache.hbase.thirdparty.com.google.protobuf.Descriptors.MethodDescriptor;
import org.apache.hbase.thirdparty.com.google.protobuf.Message;
import org.apache.hbase.thirdparty.com.google.protobuf.TextFormat;

/** Single calls of MasterService, with the request as protobuf text. */
final class MasterSteps {
  private static final Pattern PLACE = Pattern.compile("\\{\\{(encoded|name):([^}]*)\\}\\}");

  private MasterSteps() {
  }

  private static MasterProtos.MasterService.BlockingInterface master(Play p) throws Exception {
    return ((ClusterConnection) p.conn).getMaster();
  }

  static JsonElement call(Play p, TableName table, JsonObject s) throws Exception {
    MasterProtos.MasterService.BlockingInterface master = master(p);
    BlockingService service = MasterProtos.MasterService.newReflectiveBlockingService(master);
    MethodDescriptor method = MasterProtos.MasterService.getDescriptor().findMethodByName(Notation.text(s, "method"));
    if (method == null) {
      throw new Inexpressible("method " + Notation.text(s, "method") + " of the master");
    }
    Message.Builder request = service.getRequestPrototype(method).newBuilderForType();
    TextFormat.merge(filled(p, table, Notation.text(s, "request")), request);
    Message answer = service.callBlockingMethod(method, new HBaseRpcControllerImpl(), request.build());

    JsonObject o = new JsonObject();
    Message.Builder rest = answer.toBuilder();
    FieldDescriptor id = answer.getDescriptorForType().findFieldByName("proc_id");
    if (id != null) {
      boolean has = answer.hasField(id);
      o.addProperty("hasProcId", has);
      rest.clearField(id);
      if (has && Notation.flag(s, "wait", true)) {
        end(master, (Long) answer.getField(id), o);
      }
    }
    for (JsonElement c : Play.list(s, "clear")) {
      rest.clearField(answer.getDescriptorForType().findFieldByName(c.getAsString()));
    }
    o.addProperty("response", TextFormat.shortDebugString(rest.build()));
    return o;
  }

  /** Regions' names take the places that stand for them. */
  private static String filled(Play p, TableName table, String request) throws Exception {
    StringBuilder out = new StringBuilder();
    Matcher m = PLACE.matcher(request);
    while (m.find()) {
      RegionInfo r = Regions.holding(p, table, Bytes.toBytesBinary(m.group(2)));
      String name = m.group(1).equals("encoded") ? r.getEncodedName() : TextFormat.escapeBytes(r.getRegionName());
      m.appendReplacement(out, Matcher.quoteReplacement(name));
    }
    return m.appendTail(out).toString();
  }

  /** Waits for a procedure and says how it ended. */
  private static void end(MasterProtos.MasterService.BlockingInterface master, long id, JsonObject o) throws Exception {
    MasterProtos.GetProcedureResultRequest q = MasterProtos.GetProcedureResultRequest.newBuilder().setProcId(id).build();
    MasterProtos.GetProcedureResultResponse[] r = new MasterProtos.GetProcedureResultResponse[1];
    AdminSteps.until("the procedure has ended", () -> {
      r[0] = master.getProcedureResult(new HBaseRpcControllerImpl(), q);
      return r[0].getState() != MasterProtos.GetProcedureResultResponse.State.RUNNING;
    });
    o.addProperty("procedure", r[0].getState().name());
    if (r[0].hasException()) {
      JsonObject e = new JsonObject();
      e.addProperty("error", r[0].getException().getGenericException().getClassName());
      e.addProperty("message", r[0].getException().getGenericException().getMessage());
      o.add("procedureException", e);
    }
  }

  /** Makes a table with nothing but names, so that what it has is the server's choice. */
  static void createBare(Play p, JsonObject def) throws Exception {
    TableName table = TableName.valueOf(Notation.text(def, "name"));
    HBaseProtos.TableSchema.Builder schema = HBaseProtos.TableSchema.newBuilder().setTableName(ProtobufUtil.toProtoTableName(table));
    def.getAsJsonObject("families").keySet().forEach(f ->
      schema.addColumnFamilies(HBaseProtos.ColumnFamilySchema.newBuilder().setName(RawRequests.string(Bytes.toBytesBinary(f)))));
    master(p).createTable(null, MasterProtos.CreateTableRequest.newBuilder().setTableSchema(schema).build());
    try (Admin admin = p.conn.getAdmin()) {
      AdminSteps.until("the table is there", () -> admin.tableExists(table) && admin.isTableEnabled(table) && admin.isTableAvailable(table));
    }
  }
}

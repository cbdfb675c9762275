import java.io.IOException;
import org.apache.hadoop.hbase.NamespaceNotFoundException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** One case at play, or a fixture: its table, and when that was made. */
final class Play {
  final Connection conn;
  /** null: the case makes what it needs. */
  final TableName table;
  /** What {"now": d} counts from, in milliseconds. */
  final long t0;

  Play(Connection conn, TableName table, long t0) {
    this.conn = conn;
    this.table = table;
    this.t0 = t0;
  }

  /** Makes the table afresh. */
  static Play withTable(Connection conn, JsonObject def) throws IOException {
    TableName name = TableName.valueOf(Notation.text(def, "name"));
    try (Admin admin = conn.getAdmin()) {
      drop(admin, name);
      Descriptors.create(admin, def);
    }
    return new Play(conn, name, System.currentTimeMillis());
  }

  void dropTable() throws IOException {
    try (Admin admin = conn.getAdmin()) {
      drop(admin, table);
    }
  }

  private static void drop(Admin admin, TableName name) throws IOException {
    try {
      if (admin.tableExists(name)) {
        if (admin.isTableEnabled(name)) {
          admin.disableTable(name);
        }
        admin.deleteTable(name);
      }
    } catch (TableNotFoundException e) {
      // it is gone
    }
  }

  /** Removes what a case names as its leavings. */
  void cleanUp(JsonObject kase) throws IOException {
    if (!kase.has("cleanup")) {
      return;
    }
    JsonObject c = kase.getAsJsonObject("cleanup");
    try (Admin admin = conn.getAdmin()) {
      for (JsonElement n : list(c, "snapshots")) {
        if (!admin.listSnapshots(java.util.regex.Pattern.compile(java.util.regex.Pattern.quote(n.getAsString()))).isEmpty()) {
          admin.deleteSnapshot(n.getAsString());
        }
      }
      for (JsonElement n : list(c, "tables")) {
        drop(admin, TableName.valueOf(n.getAsString()));
      }
      for (JsonElement n : list(c, "namespaces")) {
        try {
          admin.deleteNamespace(n.getAsString());
        } catch (NamespaceNotFoundException e) {
          // it is gone
        }
      }
    }
  }

  static Iterable<JsonElement> list(JsonObject o, String key) {
    return o.has(key) ? o.getAsJsonArray(key) : java.util.Collections.emptyList();
  }

  /** Does one step and gives what was answered, an error included. */
  JsonElement perform(JsonObject step) {
    boolean wire = Notation.flag(step, "wireError", false);
    try {
      String op = Notation.text(step, "op");
      TableName at = step.has("table") && step.get("table").isJsonPrimitive() ? TableName.valueOf(Notation.text(step, "table")) : table;
      JsonElement r = DataSteps.perform(this, at, op, step);
      if (r == null) {
        r = RawSteps.perform(this, at, op, step);
      }
      if (r == null) {
        r = AdminSteps.perform(this, at, op, step);
      }
      if (r == null) {
        throw new Inexpressible("operation " + op);
      }
      return r;
    } catch (Inexpressible e) {
      throw e;
    } catch (Throwable t) {
      return Answers.error(t, wire);
    }
  }
}

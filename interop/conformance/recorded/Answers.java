import java.lang.reflect.UndeclaredThrowableException;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RetriesExhaustedException;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.ipc.RemoteWithExtrasException;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonNull;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonPrimitive;

/**
 * What a cluster answered, in the files' notation, but for timestamps, which stand as they are, and
 * errors, which have their whole text as "message".
 */
final class Answers {
  private Answers() {
  }

  static JsonObject done() {
    JsonObject o = new JsonObject();
    o.addProperty("ok", true);
    return o;
  }

  static JsonObject value(JsonElement v) {
    JsonObject o = new JsonObject();
    o.add("value", v);
    return o;
  }

  static JsonObject value(boolean v) {
    return value(new JsonPrimitive(v));
  }

  static JsonElement bytes(byte[] b) {
    return b == null ? JsonNull.INSTANCE : new JsonPrimitive(Bytes.toStringBinary(b));
  }

  static JsonArray cells(Cell[] list) {
    JsonArray all = new JsonArray();
    if (list == null) {
      return all;
    }
    for (Cell c : list) {
      JsonArray a = new JsonArray();
      a.add(Bytes.toStringBinary(c.getRowArray(), c.getRowOffset(), c.getRowLength()));
      a.add(Bytes.toStringBinary(c.getFamilyArray(), c.getFamilyOffset(), c.getFamilyLength()));
      a.add(Bytes.toStringBinary(c.getQualifierArray(), c.getQualifierOffset(), c.getQualifierLength()));
      a.add(c.getTimestamp());
      a.add(KeyValue.Type.codeToType(c.getTypeByte()).name());
      a.add(Bytes.toStringBinary(c.getValueArray(), c.getValueOffset(), c.getValueLength()));
      all.add(a);
    }
    return all;
  }

  static JsonObject result(Result r) {
    JsonObject o = new JsonObject();
    if (r == null) {
      o.add("result", JsonNull.INSTANCE);
      return o;
    }
    o.add("cells", cells(r.rawCells()));
    if (r.getExists() != null) {
      o.addProperty("exists", r.getExists());
    }
    if (r.mayHaveMoreCellsInRow()) {
      o.addProperty("more", true);
    }
    if (r.isStale()) {
      o.addProperty("stale", true);
    }
    return o;
  }

  static JsonObject checked(CheckAndMutateResult r) {
    JsonObject o = new JsonObject();
    o.addProperty("success", r.isSuccess());
    if (r.getResult() != null) {
      o.add("result", cells(r.getResult().rawCells()));
    }
    return o;
  }

  /** One action of a batch. */
  static JsonElement outcome(Object o) {
    if (o instanceof Throwable) {
      return error((Throwable) o, false);
    }
    if (o instanceof CheckAndMutateResult) {
      return checked((CheckAndMutateResult) o);
    }
    return o == null ? JsonNull.INSTANCE : result((Result) o);
  }

  /** An exception without what the client wraps it in. wire: also as the response header had it. */
  static JsonObject error(Throwable t, boolean wire) {
    boolean retried = false;
    JsonObject header = null;
    for (;;) {
      Throwable inner = null;
      if (t instanceof RetriesExhaustedWithDetailsException && ((RetriesExhaustedWithDetailsException) t).getNumExceptions() > 0) {
        inner = ((RetriesExhaustedWithDetailsException) t).getCause(0);
      } else if (t instanceof RetriesExhaustedException) {
        inner = t.getCause();
        retried |= inner != null;
      } else if (t instanceof RemoteException) {
        if (wire && t instanceof RemoteWithExtrasException) {
          header = new JsonObject();
          header.addProperty("class", ((RemoteException) t).getClassName());
          header.addProperty("doNotRetry", ((RemoteWithExtrasException) t).isDoNotRetry());
        }
        inner = ((RemoteException) t).unwrapRemoteException();
      } else if (t instanceof ExecutionException || t instanceof UndeclaredThrowableException || t.getClass().getSimpleName().equals("ServiceException")) {
        inner = t.getCause();
      }
      if (inner == null || inner == t) {
        break;
      }
      t = inner;
    }
    JsonObject o = new JsonObject();
    o.addProperty("error", t.getClass().getName());
    o.addProperty("doNotRetry", t instanceof DoNotRetryIOException);
    o.addProperty("message", String.valueOf(t.getMessage()));
    o.addProperty("side", fromServer(t) ? "server" : "client");
    if (retried) {
      o.addProperty("clientRetried", true);
    }
    if (header != null) {
      o.add("wire", header);
    }
    return o;
  }

  /** Servers send their stack traces along, in the text or as frames. */
  private static boolean fromServer(Throwable t) {
    if (String.valueOf(t.getMessage()).contains("\n\tat ")) {
      return true;
    }
    for (StackTraceElement f : t.getStackTrace()) {
      String c = f.getClassName();
      if (c.startsWith("--------") || c.startsWith("org.apache.hadoop.hbase.master.") || c.startsWith("org.apache.hadoop.hbase.regionserver.RSRpcServices")) {
        return true;
      }
    }
    return false;
  }
}

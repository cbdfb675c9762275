import java.io.ByteArrayOutputStream;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** How the files of cases write bytes, times and flags. */
final class Notation {
  private Notation() {
  }

  /** Bytes: text with \xHH in it, a text repeated, or parts one behind the other; null is null. */
  static byte[] bytes(JsonElement e) {
    if (e == null || e.isJsonNull()) {
      return null;
    }
    if (e.isJsonPrimitive()) {
      return Bytes.toBytesBinary(e.getAsString());
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    if (e.isJsonArray()) {
      for (JsonElement part : e.getAsJsonArray()) {
        out.writeBytes(bytes(part));
      }
    } else {
      byte[] unit = bytes(e.getAsJsonObject().get("repeat"));
      for (int n = e.getAsJsonObject().get("times").getAsInt(); n > 0; n--) {
        out.writeBytes(unit);
      }
    }
    return out.toByteArray();
  }

  static byte[] bytes(JsonObject o, String key) {
    return bytes(o.get(key));
  }

  /** Text: null if it is not there. */
  static String text(JsonObject o, String key) {
    return o.has(key) && !o.get(key).isJsonNull() ? o.get(key).getAsString() : null;
  }

  static boolean flag(JsonObject o, String key, boolean otherwise) {
    return o.has(key) ? o.get(key).getAsBoolean() : otherwise;
  }

  static int number(JsonObject o, String key) {
    return o.get(key).getAsInt();
  }

  /** A timestamp; t0 is what {"now": d} counts from. Absent means the server's clock. */
  static long time(JsonElement e, long t0) {
    if (e == null || e.isJsonNull()) {
      return HConstants.LATEST_TIMESTAMP;
    }
    if (e.isJsonObject()) {
      return t0 + e.getAsJsonObject().get("now").getAsLong();
    }
    if (!e.getAsJsonPrimitive().isString()) {
      return e.getAsLong();
    }
    switch (e.getAsString()) {
      case "max":
        return Long.MAX_VALUE;
      case "min":
        return Long.MIN_VALUE;
      default:
        throw new IllegalArgumentException("timestamp " + e);
    }
  }
}

import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonNull;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** Compares what was answered with what was recorded: everything, but for a message's wording beyond the recorded piece. */
final class Comparison {
  /** Clocks of two processes on one machine, in milliseconds. */
  private static final long SLACK = 1000;
  private final Play play;

  Comparison(Play play) {
    this.play = play;
  }

  /** What is different, as a path and two values; null if nothing is. */
  String difference(JsonElement want, JsonElement got) {
    return compare("", orNull(want), orNull(got));
  }

  private static JsonElement orNull(JsonElement e) {
    return e == null ? JsonNull.INSTANCE : e;
  }

  private String compare(String path, JsonElement want, JsonElement got) {
    if (want.isJsonObject() && got.isJsonObject()) {
      return objects(path, want.getAsJsonObject(), got.getAsJsonObject());
    }
    if (want.isJsonArray() && got.isJsonArray()) {
      return arrays(path, want.getAsJsonArray(), got.getAsJsonArray());
    }
    return want.equals(got) ? null : said(path, want, got);
  }

  private static String said(String path, JsonElement want, JsonElement got) {
    return (path.isEmpty() ? "answer" : path.substring(1)) + ": " + got + ", recorded " + want;
  }

  private String objects(String path, JsonObject want, JsonObject got) {
    TreeSet<String> keys = new TreeSet<>(want.keySet());
    keys.addAll(got.keySet());
    for (String k : keys) {
      if (k.equals("message") && want.has("error")) {
        continue;
      }
      String d;
      if (k.equals("messageContains")) {
        d = message(path, want.get(k).getAsString(), got.has("message") ? got.get("message").getAsString() : "");
      } else {
        JsonElement w = orNull(want.get(k));
        JsonElement g = orNull(got.get(k));
        if (want.has(k) != got.has(k)) {
          return said(path + "/" + k, w, g);
        }
        boolean byIndex = k.equals("results") && path.startsWith("/regions");
        d = byIndex ? compare(path + "/" + k, indexed(w), indexed(g)) : compare(path + "/" + k, w, g);
      }
      if (d != null) {
        return d;
      }
    }
    return null;
  }

  /** The order of the results of a region's actions is the server's choice. */
  private static JsonElement indexed(JsonElement results) {
    Map<Integer, JsonElement> byIndex = new TreeMap<>();
    for (JsonElement r : results.getAsJsonArray()) {
      if (byIndex.put(r.getAsJsonObject().get("index").getAsInt(), r) != null) {
        return results;
      }
    }
    JsonObject o = new JsonObject();
    byIndex.forEach((i, r) -> o.add(String.valueOf(i), r));
    return o;
  }

  /** The first line of a message has the recorded piece in it. */
  private static String message(String path, String want, String got) {
    String line = got.split("\n", 2)[0];
    return line.contains(want) ? null : (path + "/message").substring(1) + ": \"" + line + "\", recorded \"" + want + "\"";
  }

  private String arrays(String path, JsonArray want, JsonArray got) {
    if (want.size() != got.size()) {
      return said(path, want, got);
    }
    if (isCell(want)) {
      return cell(path, want, got);
    }
    for (int i = 0; i < want.size(); i++) {
      String d = compare(path + "/" + i, want.get(i), got.get(i));
      if (d != null) {
        return d;
      }
    }
    return null;
  }

  private static boolean isCell(JsonArray a) {
    if (a.size() != 6 || !a.get(4).isJsonPrimitive()) {
      return false;
    }
    String type = a.get(4).getAsString();
    return type.equals("Put") || type.startsWith("Delete");
  }

  private String cell(String path, JsonArray want, JsonArray got) {
    boolean same = want.get(4).equals(got.get(4)) && sameTime(want.get(3), got.get(3).getAsLong());
    for (int i : new int[] { 0, 1, 2, 5 }) {
      same = same && Arrays.equals(Notation.bytes(want.get(i)), Notation.bytes(got.get(i)));
    }
    return same ? null : said(path, want, got);
  }

  private boolean sameTime(JsonElement want, long got) {
    if (want.isJsonPrimitive() && want.getAsJsonPrimitive().isString() && want.getAsString().equals("now")) {
      return got >= play.t0 - SLACK && got <= System.currentTimeMillis() + SLACK;
    }
    return got == Notation.time(want, play.t0);
  }
}

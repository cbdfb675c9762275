import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;

/**
 * Plays recorded cases (testdata/vectors) with HBase's own client and compares every answer with the
 * recorded one. Prints one line of JSON for each case that does not pass,
 * {"case", "outcome": "differs" | "inexpressible" | "broken", "why"}, and at the end
 * {"played", "passed", "steps"}.
 *
 * Arguments: key=value. folder: the *.json files (required); threads: cases side by side (6); only: a
 * regular expression over names. All others are settings of the client.
 */
public class PlayCases {
  private static final class Job {
    final String name;
    final JsonObject theme;
    final JsonObject kase;

    Job(JsonObject theme, JsonObject kase) {
      this.theme = theme;
      this.kase = kase;
      String prefix = theme.get("theme").getAsString() + "/";
      String own = kase.get("name").getAsString();
      this.name = own.startsWith(prefix) ? own : prefix + own;
    }
  }

  private final Connection conn;
  /** Cases that count the tables of namespace hbase are alone. */
  private final ReadWriteLock system = new ReentrantReadWriteLock();
  private final Map<String, FutureTask<Play>> fixtures = new ConcurrentHashMap<>();
  private final JsonObject totals = new JsonObject();
  private int passed;
  private int steps;

  private PlayCases(Connection conn) {
    this.conn = conn;
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    // As the recording client was set: the server judges sizes, and retries are few.
    conf.set("hbase.client.keyvalue.maxsize", "0");
    conf.setInt("hbase.client.retries.number", 6);
    conf.setInt("hbase.client.pause", 40);
    conf.setInt("hbase.client.operation.timeout", 60000);
    Map<String, String> own = new TreeMap<>();
    for (String a : args) {
      String key = a.substring(0, a.indexOf('='));
      String value = a.substring(a.indexOf('=') + 1);
      if (key.equals("folder") || key.equals("threads") || key.equals("only")) {
        own.put(key, value);
      } else {
        conf.set(key, value);
      }
    }
    List<Job> jobs = load(Paths.get(own.get("folder")), Pattern.compile(own.getOrDefault("only", "")));
    try (Connection conn = ConnectionFactory.createConnection(conf)) {
      new PlayCases(conn).play(jobs, Integer.parseInt(own.getOrDefault("threads", "6")));
    }
    System.exit(0);
  }

  private static List<Job> load(Path folder, Pattern only) throws Exception {
    List<Path> files = new ArrayList<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(folder, "*.json")) {
      all.forEach(files::add);
    }
    files.sort(Comparator.naturalOrder());
    List<Job> jobs = new ArrayList<>();
    for (Path f : files) {
      JsonObject theme = JsonParser.parseString(Files.readString(f)).getAsJsonObject();
      if (!theme.has("theme")) {
        String file = f.getFileName().toString();
        theme.addProperty("theme", file.substring(0, file.length() - ".json".length()));
      }
      for (JsonElement k : theme.getAsJsonArray("cases")) {
        Job j = new Job(theme, k.getAsJsonObject());
        if (only.matcher(j.name).find()) {
          jobs.add(j);
        }
      }
    }
    // What waits begins first, so that the rest goes on meanwhile.
    jobs.sort(Comparator.comparingInt(j -> waits(j.kase) ? 0 : 1));
    return jobs;
  }

  private static boolean waits(JsonObject kase) {
    for (JsonElement s : kase.getAsJsonArray("steps")) {
      String op = s.getAsJsonObject().get("op").getAsString();
      if (op.equals("sleep") || op.equals("majorCompact") && s.getAsJsonObject().has("family")) {
        return true;
      }
    }
    return false;
  }

  private static boolean countsSystemTables(JsonElement e) {
    String text = e.toString();
    return text.contains("\"hbase:") && text.contains("createTable") || text.contains("listTablesByNamespace") || text.contains("includeSystem");
  }

  private void play(List<Job> jobs, int threads) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    List<Future<?>> running = new ArrayList<>();
    for (Job j : jobs) {
      running.add(pool.submit(() -> {
        boolean alone = countsSystemTables(j.kase.get("steps"));
        java.util.concurrent.locks.Lock lock = alone ? system.writeLock() : system.readLock();
        lock.lock();
        try {
          playCase(j);
        } finally {
          lock.unlock();
        }
      }));
    }
    for (Future<?> f : running) {
      f.get();
    }
    pool.shutdown();
    for (FutureTask<Play> f : fixtures.values()) {
      f.get().dropTable();
    }
    totals.addProperty("played", jobs.size());
    totals.addProperty("passed", passed);
    totals.addProperty("steps", steps);
    System.out.println(totals);
  }

  private void playCase(Job j) {
    Play p = null;
    try {
      p = context(j);
      p.cleanUp(j.kase);
      int n = 0;
      for (JsonElement e : j.kase.getAsJsonArray("steps")) {
        JsonObject step = e.getAsJsonObject();
        JsonElement want = step.get("expect");
        JsonElement got;
        try {
          got = p.perform(step);
        } catch (Inexpressible x) {
          report(j, "inexpressible", x.getMessage());
          return;
        }
        synchronized (this) {
          steps++;
        }
        String difference = new Comparison(p).difference(want, got);
        if (difference != null) {
          report(j, "differs", "step " + n + ", " + brief(without(step, "expect")) + ": " + difference
            + "\n     got " + brief(got) + "\nrecorded " + brief(want));
          return;
        }
        n++;
      }
      synchronized (this) {
        passed++;
      }
    } catch (Throwable t) {
      java.io.StringWriter trace = new java.io.StringWriter();
      t.printStackTrace(new java.io.PrintWriter(trace));
      report(j, "broken", brief(new org.apache.hbase.thirdparty.com.google.gson.JsonPrimitive(trace.toString())));
    } finally {
      try {
        if (p != null && j.kase.has("table")) {
          p.dropTable();
        }
        if (p != null) {
          p.cleanUp(j.kase);
        }
      } catch (Exception e) {
        report(j, "broken", "cleaning up: " + e);
      }
    }
  }

  /** The table of a case, made afresh or shared. */
  private Play context(Job j) throws Exception {
    if (j.kase.has("fixture")) {
      String fixture = j.kase.get("fixture").getAsString();
      FutureTask<Play> made = fixtures.computeIfAbsent(j.theme.get("theme").getAsString() + "/" + fixture, k -> new FutureTask<>(() -> {
        JsonObject def = j.theme.getAsJsonObject("fixtures").getAsJsonObject(fixture);
        Play p = Play.withTable(conn, def.getAsJsonObject("table"));
        if (def.has("steps")) {
          for (JsonElement s : def.getAsJsonArray("steps")) {
            JsonElement r = p.perform(s.getAsJsonObject());
            if (r.getAsJsonObject().has("error")) {
              throw new IllegalStateException("fixture " + fixture + ": " + r);
            }
          }
        }
        return p;
      }));
      made.run(); // does nothing the second time
      return made.get();
    }
    return j.kase.has("table") ? Play.withTable(conn, j.kase.getAsJsonObject("table")) : new Play(conn, null, System.currentTimeMillis());
  }

  private synchronized void report(Job j, String outcome, String why) {
    JsonObject o = new JsonObject();
    o.addProperty("case", j.name);
    o.addProperty("outcome", outcome);
    o.addProperty("why", why);
    System.out.println(o);
  }

  private static JsonObject without(JsonObject o, String member) {
    JsonObject c = new JsonObject();
    for (Map.Entry<String, JsonElement> e : o.entrySet()) {
      if (!e.getKey().equals(member)) {
        c.add(e.getKey(), e.getValue());
      }
    }
    return c;
  }

  private static String brief(JsonElement e) {
    String s = String.valueOf(e);
    return s.length() <= 1500 ? s : s.substring(0, 1500) + "...";
  }
}

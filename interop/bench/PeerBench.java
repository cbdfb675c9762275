import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * HBase's Java client as a contender: the same commands and answers as the program in the folder
 * worker. The first argument is "blocking" (Table) or "async" (AsyncTable); others override the
 * client's configuration.
 */
public class PeerBench {
  private static final byte[] F = Bytes.toBytes("f"), Q = Bytes.toBytes("q"), N = Bytes.toBytes("n");
  private static Configuration conf;
  private static boolean async;

  /** A table, read and written in either way. */
  private interface Peer extends AutoCloseable {
    Result get(byte[] row) throws Exception;

    void put(Put p) throws Exception;

    void put(List<Put> ps) throws Exception;

    void increment(byte[] row) throws Exception;

    ResultScanner scan() throws Exception;
  }

  private static Connection blocking;
  private static AsyncConnection other;

  private static Peer peer(String table) throws Exception {
    TableName name = TableName.valueOf(table);
    if (async) {
      if (other == null) {
        other = ConnectionFactory.createAsyncConnection(conf).get();
      }
      return asyncPeer(other, name);
    }
    if (blocking == null) {
      blocking = ConnectionFactory.createConnection(conf);
    }
    return blockingPeer(blocking, name);
  }

  private static Peer blockingPeer(Connection conn, TableName name) throws Exception {
    Table t = conn.getTable(name);
    return new Peer() {
      public Result get(byte[] row) throws Exception { return t.get(new Get(row)); }

      public void put(Put p) throws Exception { t.put(p); }

      public void put(List<Put> ps) throws Exception { t.put(ps); }

      public void increment(byte[] row) throws Exception { t.increment(new Increment(row).addColumn(F, N, 1)); }

      public ResultScanner scan() throws Exception { return t.getScanner(new Scan()); }

      public void close() throws Exception { t.close(); }
    };
  }

  private static Peer asyncPeer(AsyncConnection conn, TableName name) {
    AsyncTable<AdvancedScanResultConsumer> t = conn.getTable(name);
    return new Peer() {
      public Result get(byte[] row) throws Exception { return t.get(new Get(row)).get(); }

      public void put(Put p) throws Exception { t.put(p).get(); }

      public void put(List<Put> ps) throws Exception { t.putAll(ps).get(); }

      public void increment(byte[] row) throws Exception { t.increment(new Increment(row).addColumn(F, N, 1)).get(); }

      public ResultScanner scan() throws Exception { return t.getScanner(new Scan()); }

      public void close() { }
    };
  }

  private static byte[] rowName(int n) {
    return Bytes.toBytes(String.format("%04d-%015d", n % 10000, n));
  }

  private static double cpuSeconds() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
  }

  /** Callers in a closed loop, each a thread. */
  private static final class Load {
    final List<Thread> threads = new ArrayList<>();
    final long begin = System.nanoTime();
    final double cpu = cpuSeconds();
    final AtomicLong last = new AtomicLong(), gap = new AtomicLong(), acked = new AtomicLong(), rows = new AtomicLong(),
      errors = new AtomicLong();
    final List<long[]> took = new ArrayList<>();
    volatile boolean done;
    volatile String firstError;

    Load(String table, String kind, int callers, int rowCount, int regions) throws Exception {
      for (int i = 0; i < callers; i++) {
        Peer p = peer(table);
        // With regions, each caller keeps to the rows of one of them.
        int rows = regions > 0 ? rowCount / regions : rowCount, first = regions > 0 ? i % regions * rows : 0;
        Thread t = new Thread(() -> run(p, kind, first, rows));
        threads.add(t);
        t.start();
      }
    }

    void run(Peer p, String kind, int first, int rowCount) {
      byte[] value = new byte[100];
      long[] mine = new long[1024];
      int n = 0;
      while (!done) {
        byte[] row = rowName(first + ThreadLocalRandom.current().nextInt(rowCount));
        long start = System.nanoTime();
        try {
          switch (kind) {
            case "get":
              if (p.get(row).isEmpty()) {
                throw new IllegalStateException("row missing");
              }
              break;
            case "put":
              p.put(new Put(row).addColumn(F, Q, value));
              break;
            case "increment":
              p.increment(row);
              break;
            case "scan":
              int seen = 0;
              try (ResultScanner s = p.scan()) {
                while (s.next() != null) {
                  seen++;
                }
              }
              rows.addAndGet(seen);
              if (seen != rowCount) {
                throw new IllegalStateException(seen + " rows instead of " + rowCount);
              }
              break;
            default:
              throw new IllegalArgumentException(kind);
          }
          acked.incrementAndGet();
          finished();
        } catch (Throwable e) {
          if (errors.incrementAndGet() == 1) {
            firstError = String.valueOf(e).split("\n")[0].replace('"', '\'').replace('\\', '/');
          }
        }
        if (n == mine.length) {
          mine = Arrays.copyOf(mine, 2 * n);
        }
        mine[n++] = System.nanoTime() - start;
      }
      synchronized (took) {
        took.add(Arrays.copyOf(mine, n));
      }
    }

    void finished() {
      long now = System.nanoTime() - begin;
      long g = now - last.getAndSet(now);
      gap.accumulateAndGet(g, Math::max);
    }

    Map<String, Object> stop() throws Exception {
      done = true;
      double seconds = (System.nanoTime() - begin) / 1e9;
      for (Thread t : threads) {
        t.join();
      }
      finished();
      long[] all = took.stream().flatMapToLong(Arrays::stream).sorted().toArray();
      Map<String, Object> a = new TreeMap<>();
      a.put("ops", all.length);
      a.put("acked", acked.get());
      a.put("rows", rows.get());
      a.put("errors", errors.get());
      a.put("per_s", acked.get() / seconds);
      a.put("gap_ms", gap.get() / 1e6);
      if (all.length > 0) {
        a.put("p50_us", all[all.length / 2] / 1e3);
        a.put("p99_us", all[(int) Math.min(all.length - 1, (long) (0.99 * all.length))] / 1e3);
        a.put("p999_us", all[(int) Math.min(all.length - 1, (long) (0.999 * all.length))] / 1e3);
        a.put("max_us", all[all.length - 1] / 1e3);
      }
      if (firstError != null) {
        a.put("first_error", firstError);
      }
      cost(a, cpu, rows.get() > 0 ? rows.get() : acked.get());
      return a;
    }
  }

  private static void cost(Map<String, Object> a, double before, long n) {
    if (n > 0) {
      a.put("cpu_s_per_100k", (cpuSeconds() - before) / n * 1e5);
    }
  }

  private static Map<String, Object> bulk(Map<String, String> a) throws Exception {
    int rows = Integer.parseInt(a.get("rows")), callers = Integer.parseInt(a.getOrDefault("callers", "1"));
    byte[] value = new byte[100];
    double cpu = cpuSeconds();
    long begin = System.nanoTime();
    if (a.get("mode").equals("mutator")) {
      Connection c = blocking != null ? blocking : (blocking = ConnectionFactory.createConnection(conf));
      try (BufferedMutator m = c.getBufferedMutator(TableName.valueOf(a.get("table")))) {
        for (int i = 0; i < rows; i++) {
          m.mutate(new Put(rowName(i)).addColumn(F, Q, value));
        }
      }
    } else {
      List<Thread> threads = new ArrayList<>();
      for (int c = 0; c < callers; c++) {
        Peer p = peer(a.get("table"));
        int first = c * 1000;
        Thread t = new Thread(() -> {
          try {
            for (int at = first; at < rows; at += callers * 1000) {
              List<Put> ps = new ArrayList<>();
              for (int i = at; i < Math.min(at + 1000, rows); i++) {
                ps.add(new Put(rowName(i)).addColumn(F, Q, value));
              }
              p.put(ps);
            }
          } catch (Exception e) {
            throw new IllegalStateException(e);
          }
        });
        threads.add(t);
        t.start();
      }
      for (Thread t : threads) {
        t.join();
      }
    }
    Map<String, Object> out = new TreeMap<>();
    out.put("rows", rows);
    out.put("per_s", rows / ((System.nanoTime() - begin) / 1e9));
    cost(out, cpu, rows);
    return out;
  }

  private static Map<String, Object> scan(Map<String, String> a) throws Exception {
    Peer p = peer(a.get("table"));
    double cpu = cpuSeconds();
    long begin = System.nanoTime();
    long n = 0, bytes = 0;
    try (ResultScanner s = p.scan()) {
      for (Result r; (r = s.next()) != null; n++) {
        bytes += r.rawCells()[0].getValueLength();
      }
    }
    Map<String, Object> out = new TreeMap<>();
    out.put("rows", n);
    out.put("bytes", bytes);
    out.put("per_s", n / ((System.nanoTime() - begin) / 1e9));
    cost(out, cpu, n);
    return out;
  }

  /** A connection of its own, closed again. */
  private interface Use { void with(Peer p) throws Exception; }

  private static void fresh(String table, Use u) throws Exception {
    TableName name = TableName.valueOf(table);
    if (async) {
      try (AsyncConnection c = ConnectionFactory.createAsyncConnection(conf).get()) {
        u.with(asyncPeer(c, name));
      }
      return;
    }
    try (Connection c = ConnectionFactory.createConnection(conf)) {
      u.with(blockingPeer(c, name));
    }
  }

  private static Map<String, Object> cold(Map<String, String> a) throws Exception {
    long begin = System.nanoTime();
    Map<String, Object> out = new TreeMap<>();
    fresh(a.get("table"), p -> {
      p.get(rowName(1));
      out.put("ms", (System.nanoTime() - begin) / 1e6);
    });
    return out;
  }

  private static Map<String, Object> herd(Map<String, String> a) throws Exception {
    int callers = Integer.parseInt(a.get("callers")), rows = Integer.parseInt(a.get("rows"));
    Map<String, Object> out = new TreeMap<>();
    fresh(a.get("table"), p -> {
      CountDownLatch start = new CountDownLatch(1);
      List<Thread> threads = new ArrayList<>();
      AtomicLong failed = new AtomicLong();
      for (int i = 0; i < callers; i++) {
        byte[] row = rowName(i % rows);
        Thread t = new Thread(() -> {
          try {
            start.await();
            if (p.get(row).isEmpty()) {
              failed.incrementAndGet();
            }
          } catch (Exception e) {
            failed.incrementAndGet();
          }
        });
        threads.add(t);
        t.start();
      }
      long begin = System.nanoTime();
      start.countDown();
      for (Thread t : threads) {
        t.join();
      }
      out.put("ms", (System.nanoTime() - begin) / 1e6);
      if (failed.get() > 0) {
        out.put("error", failed.get() + " calls failed");
      }
    });
    return out;
  }

  private static long heap() throws Exception {
    for (int i = 0; i < 3; i++) {
      System.gc();
      Thread.sleep(50);
    }
    Runtime r = Runtime.getRuntime();
    return r.totalMemory() - r.freeMemory();
  }

  private static Map<String, Object> routes(Map<String, String> a) throws Exception {
    Map<String, Object> out = new TreeMap<>();
    int rows = Integer.parseInt(a.get("rows"));
    // The first connection loads the classes; the second is measured.
    for (int round = 0; round < 2; round++) {
      if (async) {
        try (AsyncConnection c = ConnectionFactory.createAsyncConnection(conf).get()) {
          routes(out, asyncPeer(c, TableName.valueOf(a.get("other"))), asyncPeer(c, TableName.valueOf(a.get("table"))), rows);
        }
        continue;
      }
      try (Connection c = ConnectionFactory.createConnection(conf)) {
        routes(out, blockingPeer(c, TableName.valueOf(a.get("other"))), blockingPeer(c, TableName.valueOf(a.get("table"))), rows);
      }
    }
    return out;
  }

  private static void routes(Map<String, Object> out, Peer other, Peer p, int rows) throws Exception {
    for (int i = 0; i < rows; i++) {
      other.get(rowName(i));
    }
    long before = heap();
    for (int i = 0; i < rows; i++) {
      p.get(rowName(i));
    }
    out.put("bytes_per_route", (heap() - before) / (double) rows);
    out.put("routes", rows);
  }

  private static String json(Map<String, Object> a) {
    StringBuilder b = new StringBuilder("{");
    for (Map.Entry<String, Object> e : a.entrySet()) {
      b.append(b.length() > 1 ? "," : "").append('"').append(e.getKey()).append("\":");
      if (e.getValue() instanceof Number) {
        b.append(e.getValue());
      } else {
        b.append('"').append(e.getValue()).append('"');
      }
    }
    return b.append('}').toString();
  }

  public static void main(String[] args) throws Exception {
    conf = HBaseConfiguration.create();
    async = args[0].equals("async");
    for (String a : Arrays.copyOfRange(args, 1, args.length)) {
      int eq = a.indexOf('=');
      conf.set(a.substring(0, eq), a.substring(eq + 1));
    }
    Map<String, Load> running = new HashMap<>();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null;) {
      String[] words = line.trim().split("\\s+");
      Map<String, String> a = new HashMap<>();
      for (String w : words) {
        int eq = w.indexOf('=');
        if (eq > 0) {
          a.put(w.substring(0, eq), w.substring(eq + 1));
        }
      }
      Map<String, Object> out = new TreeMap<>();
      try {
        switch (words[0]) {
          case "get":
          case "put":
          case "increment":
            Load l = new Load(a.get("table"), words[0], Integer.parseInt(a.getOrDefault("callers", "1")),
              Integer.parseInt(a.getOrDefault("rows", "1000")), 0);
            TimeUnit.SECONDS.sleep(Integer.parseInt(a.getOrDefault("seconds", "1")));
            out = l.stop();
            break;
          case "bulk":
            out = bulk(a);
            break;
          case "scan":
            out = scan(a);
            break;
          case "cold":
            out = cold(a);
            break;
          case "herd":
            out = herd(a);
            break;
          case "routes":
            out = routes(a);
            break;
          case "start":
            running.put(a.get("name"), new Load(a.get("table"), a.get("kind"), Integer.parseInt(a.getOrDefault("callers", "1")),
              Integer.parseInt(a.getOrDefault("rows", "1000")), Integer.parseInt(a.getOrDefault("regions", "0"))));
            break;
          case "count":
            out.put("acked", running.get(a.get("name")).acked.get());
            break;
          case "stop":
            out = running.remove(a.get("name")).stop();
            break;
          default:
            out.put("error", "unknown command " + words[0]);
        }
      } catch (Throwable e) {
        out.put("error", String.valueOf(e).split("\n")[0].replace('"', '\'').replace('\\', '/'));
      }
      System.out.println(json(out));
      System.out.flush();
    }
    System.exit(0);
  }
}

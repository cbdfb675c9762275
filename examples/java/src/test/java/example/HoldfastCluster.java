package example;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;

/** A cluster for tests: starts {@code holdfast up}, and speaks to its control port. */
final class HoldfastCluster implements AutoCloseable {
  private final Path dir;
  private final Process process;
  private final String ready;
  private final HttpClient http = HttpClient.newHttpClient();

  HoldfastCluster(String... flags) throws IOException, InterruptedException {
    dir = Files.createTempDirectory("holdfast");
    Path file = dir.resolve("ready.json"), log = dir.resolve("log");
    String binary = System.getenv().getOrDefault("HOLDFAST", "holdfast");
    // The cluster ends with the pipe: whatever becomes of this process, none is left behind.
    List<String> command = new ArrayList<>(List.of(binary, "up", "--in-memory", "--free-ports", "--ready-file", file.toString(), "--die-with-stdin"));
    command.addAll(List.of(flags));
    process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (!Files.exists(file)) { // it appears whole
      if (!process.isAlive() || System.nanoTime() > deadline) {
        throw new IOException("holdfast up: " + Files.readString(log));
      }
      Thread.sleep(2);
    }
    ready = Files.readString(file);
  }

  /** The settings with which an unchanged client of HBase finds the cluster. */
  Configuration configuration() {
    String[] zk = field(ready, "zookeeper").split(":");
    Configuration c = HBaseConfiguration.create();
    c.set("hbase.zookeeper.quorum", zk[0]);
    c.set("hbase.zookeeper.property.clientPort", zk[1]);
    // A client for tests gives up on a lost answer soon, and asks again soon.
    c.setInt("hbase.rpc.timeout", 1000);
    c.setInt("hbase.client.pause", 20);
    return c;
  }

  /** POSTs to the control port: docs/control-api.md lists the requests. Body and answer are JSON. */
  String post(String path, String body) throws IOException, InterruptedException {
    return send(HttpRequest.newBuilder().POST(HttpRequest.BodyPublishers.ofString(body)), path);
  }

  String get(String path) throws IOException, InterruptedException {
    return send(HttpRequest.newBuilder().GET(), path);
  }

  private String send(HttpRequest.Builder request, String path) throws IOException, InterruptedException {
    HttpResponse<String> r = http.send(request.uri(URI.create(field(ready, "control") + path)).build(), HttpResponse.BodyHandlers.ofString());
    if (r.statusCode() != 200) {
      throw new IOException(path + ": " + r.body());
    }
    return r.body();
  }

  /** The first field of that name in a JSON text. A project with a JSON library would use it. */
  static String field(String json, String name) {
    Matcher m = Pattern.compile('"' + name + "\": *(?:\"([^\"]*)\"|([^,}\\]]*))").matcher(json);
    if (!m.find()) {
      throw new IllegalArgumentException("no " + name + " in " + json);
    }
    return m.group(1) != null ? m.group(1) : m.group(2);
  }

  @Override
  public void close() throws IOException, InterruptedException {
    process.getOutputStream().close();
    if (!process.waitFor(30, TimeUnit.SECONDS)) {
      process.destroyForcibly();
    }
    try (var files = Files.list(dir)) {
      for (Path f : files.toList()) {
        Files.delete(f);
      }
    }
    Files.delete(dir);
  }
}

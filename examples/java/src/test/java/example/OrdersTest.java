package example;

import static org.apache.hadoop.hbase.util.Bytes.toBytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class OrdersTest {
  private static final TableName ORDERS = TableName.valueOf("orders");
  private static final byte[] O = toBytes("o");
  private static HoldfastCluster cluster;
  private static Connection connection;

  @BeforeAll
  static void start() throws Exception {
    cluster = new HoldfastCluster();
    connection = ConnectionFactory.createConnection(cluster.configuration());
  }

  @AfterAll
  static void stop() throws Exception {
    connection.close();
    cluster.close();
  }

  @BeforeEach
  void load() throws Exception {
    cluster.post("/reset", "{}"); // under 5 ms, whatever the test before has broken
    connection.clearRegionLocationCache();
    try (Admin admin = connection.getAdmin(); Table table = connection.getTable(ORDERS)) {
      admin.createTable(TableDescriptorBuilder.newBuilder(ORDERS).setColumnFamily(ColumnFamilyDescriptorBuilder.of(O)).build(), new byte[][] {toBytes("m")});
      List<Put> puts = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        puts.add(new Put(toBytes((i % 2 == 0 ? "a-" : "user-") + i)).addColumn(O, toBytes("state"), toBytes("open")));
      }
      table.put(puts);
    }
  }

  @Test
  void ordersSurviveAMoveAndAKill() throws Exception {
    assertEquals(100, rows());
    String before = HoldfastCluster.field(cluster.get("/regions?table=orders&limit=1"), "server");
    String moved = HoldfastCluster.field(cluster.post("/move", "{\"table\": \"orders\", \"row\": \"a-0\"}"), "server");
    assertNotEquals(before, moved);
    String index = HoldfastCluster.field(cluster.get("/regions?table=orders&limit=1"), "index");
    cluster.post("/kill", "{\"server\": \"" + index + "\"}");
    assertEquals(100, rows());
    assertNotEquals(index, HoldfastCluster.field(cluster.get("/regions?table=orders&limit=1"), "index"));
  }

  @Test
  void anOrderCountsOnceThoughTheAnswerIsLost() throws Exception {
    String rule = HoldfastCluster.field(cluster.post("/rule", "{\"method\": \"Mutate\", \"table\": \"orders\", \"action\": \"drop-reply\", \"times\": 1}"), "id");
    try (Table table = connection.getTable(ORDERS)) {
      assertEquals(1, table.incrementColumnValue(toBytes("user-1"), O, toBytes("count"), 1));
      assertEquals("1", HoldfastCluster.field(cluster.post("/rule/" + rule + "/wait?hits=1&timeout=10s", ""), "hits"));
      assertArrayEquals(toBytes(1L), table.get(new Get(toBytes("user-1"))).getValue(O, toBytes("count")));
    }
  }

  private static int rows() throws IOException {
    int n = 0;
    try (Table table = connection.getTable(ORDERS); ResultScanner scanner = table.getScanner(new Scan())) {
      while (scanner.next() != null) {
        n++;
      }
    }
    return n;
  }
}

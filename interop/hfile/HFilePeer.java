import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContext;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.io.hfile.HFileScanner;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.regionserver.StoreFileWriter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.ChecksumType;

/**
 * HFiles by HBase's own writer and reader.
 *
 * <pre>
 * write FILE ENCODING COMPRESSION BLOOM CHECKSUM tags|plain|nocompress   the sample cells
 * print FILE                           every cell, a line each; fails if the file is not sound
 * load DIR TABLE                       the bulk load tool
 * </pre>
 *
 * Arguments with a "=" before the command override the configuration.
 */
public class HFilePeer {
  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    List<String> rest = new ArrayList<>();
    for (String a : args) {
      int eq = a.indexOf('=');
      if (eq > 0) {
        conf.set(a.substring(0, eq), a.substring(eq + 1));
      } else {
        rest.add(a);
      }
    }
    for (int i = 0; i < rest.size();) {
      switch (rest.get(i)) {
        case "write":
          try {
            write(conf, rest.subList(i + 1, i + 7));
          } catch (Throwable e) {
            System.out.println("ERROR " + rest.subList(i + 1, i + 7) + " " + e);
          }
          i += 7;
          break;
        case "print":
          print(conf, rest.get(i + 1));
          i += 2;
          break;
        case "load":
          System.out.println("exit " + org.apache.hadoop.util.ToolRunner.run(conf,
            new org.apache.hadoop.hbase.tool.BulkLoadHFilesTool(conf),
            new String[] { rest.get(i + 1), rest.get(i + 2) }));
          i += 3;
          break;
        default:
          throw new IllegalArgumentException(rest.get(i));
      }
    }
  }

  private static void write(Configuration conf, List<String> a) throws Exception {
    conf.setInt("hfile.index.block.max.size", 300);
    conf.setInt("io.storefile.bloom.block.size", 64);
    boolean tags = !a.get(5).equals("plain");
    FileSystem fs = FileSystem.getLocal(conf);
    HFileContext ctx = new HFileContextBuilder()
      .withDataBlockEncoding(DataBlockEncoding.valueOf(a.get(1)))
      .withCompression(Compression.Algorithm.valueOf(a.get(2)))
      .withChecksumType(ChecksumType.valueOf(a.get(4)))
      .withBlockSize(700).withBytesPerCheckSum(512)
      .withIncludesMvcc(true).withIncludesTags(tags)
      .withCompressTags(tags && !a.get(5).equals("nocompress"))
      .withColumnFamily(Bytes.toBytes("cf")).withTableName(Bytes.toBytes("t")).build();
    StoreFileWriter w = new StoreFileWriter.Builder(conf, new CacheConfig(conf), fs)
      .withFilePath(new Path(a.get(0))).withFileContext(ctx)
      .withBloomType(BloomType.valueOf(a.get(3))).withMaxKeyCount(300).build();
    for (KeyValue kv : sample(tags)) {
      w.append(kv);
    }
    w.appendMetadata(4321, true);
    w.close();
    System.out.println("wrote " + a);
  }

  /** About 250 cells that have every shape an encoding treats in its own way. */
  private static List<KeyValue> sample(boolean tags) {
    List<KeyValue> out = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      byte[] row = Bytes.toBytes(String.format(i % 7 == 3 ? "row%03d-with-a-longer-name" : "row%03d", i));
      if (i == 59) {
        row = new byte[] { (byte) 0xff, 0, 1, 0 };
      }
      byte[] f = Bytes.toBytes("cf");
      long ts = 1700000000000L + i * 1000L;
      if (i % 10 == 4) {
        out.add(kv(row, f, new byte[0], ts, KeyValue.Type.DeleteFamily, new byte[0], null, 70 + i));
      }
      if (i % 10 == 5) {
        out.add(kv(row, f, new byte[0], ts, KeyValue.Type.Put, Bytes.toBytes("empty qualifier"), null, 71));
      }
      out.add(kv(row, f, Bytes.toBytes("a"), ts, KeyValue.Type.Put, Bytes.toBytes("v" + i), tags && i % 3 == 0 ? ttl(1000000L * (i % 2 + 1)) : null, i * 100000L));
      out.add(kv(row, f, Bytes.toBytes("ab"), ts, KeyValue.Type.Put, Bytes.toBytes("v" + i), null, 0));
      if (i % 4 == 1) {
        out.add(kv(row, f, Bytes.toBytes("b"), ts + 9, KeyValue.Type.DeleteColumn, new byte[0], null, 3));
        out.add(kv(row, f, Bytes.toBytes("b"), ts + 9, KeyValue.Type.Delete, new byte[0], null, 2));
      }
      out.add(kv(row, f, Bytes.toBytes("b"), ts + 9, KeyValue.Type.Put, Bytes.toBytes("same"), tags ? ttl(5) : null, 130));
      out.add(kv(row, f, Bytes.toBytes("b"), ts + 8, KeyValue.Type.Put, Bytes.toBytes("same"), null, 120));
      if (i % 5 == 0) {
        out.add(kv(row, f, Bytes.toBytes("c"), 1, KeyValue.Type.Put, new byte[200], tags ? two(i) : null, 1L << 40));
        out.add(kv(row, f, Bytes.toBytes("c"), 0, KeyValue.Type.Put, new byte[0], null, 5));
      }
    }
    return out;
  }

  private static Tag ttl(long ms) {
    return new ArrayBackedTag((byte) 8, Bytes.toBytes(ms));
  }

  private static Tag two(int i) {
    return new ArrayBackedTag((byte) 77, Bytes.toBytes("tag " + i));
  }

  private static KeyValue kv(byte[] r, byte[] f, byte[] q, long ts, KeyValue.Type t, byte[] v, Tag tag, long seq) {
    KeyValue kv = tag == null ? new KeyValue(r, f, q, ts, t, v) : new KeyValue(r, f, q, ts, t, v, java.util.Arrays.asList(tag, new ArrayBackedTag((byte) 64, Bytes.toBytes("common"))));
    kv.setSequenceId(seq);
    return kv;
  }

  private static void print(Configuration conf, String file) throws Exception {
    FileSystem fs = FileSystem.getLocal(conf);
    HFile.Reader r = HFile.createReader(fs, new Path(file), new CacheConfig(conf), true, conf);
    HFileScanner s = r.getScanner(conf, false, false);
    PrintStream out = System.out;
    long n = 0;
    if (s.seekTo()) {
      do {
        Cell c = s.getCell();
        byte[] tags = PrivateCellUtil.cloneTags(c);
        out.println("cell " + Bytes.toHex(c.getRowArray(), c.getRowOffset(), c.getRowLength()) + " "
          + Bytes.toHex(c.getFamilyArray(), c.getFamilyOffset(), c.getFamilyLength()) + " "
          + Bytes.toHex(c.getQualifierArray(), c.getQualifierOffset(), c.getQualifierLength()) + " "
          + c.getTimestamp() + " " + c.getType() + " "
          + Bytes.toHex(c.getValueArray(), c.getValueOffset(), c.getValueLength()) + " "
          + Bytes.toHex(tags) + " " + c.getSequenceId());
        n++;
      } while (s.next());
    }
    if (n != r.getEntries()) {
      throw new IllegalStateException(n + " cells read, " + r.getEntries() + " promised");
    }
    out.println("file entries=" + n + " midkey=" + r.midKey().map(c -> c.toString()).orElse("none") + " bloom=" + (r.getGeneralBloomFilterMetadata() != null)
      + " first=" + Bytes.toStringBinary(r.getFirstRowKey().orElse(new byte[0])) + " last=" + Bytes.toStringBinary(r.getLastRowKey().orElse(new byte[0])));
    // Every row must be found by a seek through the index, and pass the bloom filter.
    if (s.seekTo()) {
      List<KeyValue> all = new ArrayList<>();
      do {
        all.add(org.apache.hadoop.hbase.KeyValueUtil.copyToNewKeyValue(s.getCell()));
      } while (s.next());
      for (KeyValue kv : all) {
        // The root index is searched with the sequence number, which its keys do not have.
        kv.setSequenceId(0);
        if (s.seekTo(kv) != 0) {
          throw new IllegalStateException("not found by seek: " + kv);
        }
      }
    }
    r.close();
  }
}

import java.io.IOException;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.filter.*;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ComparatorProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.FilterProtos;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonPrimitive;

/** Filters and comparators, from the files' trees and back. */
final class FilterTrees {
  private FilterTrees() {
  }

  /** Makes a filter; t0 is what relative timestamps in it count from. */
  static Filter filter(JsonObject f, long t0) throws Exception {
    String type = Notation.text(f, "type");
    switch (type) {
      case "ColumnCountGetFilter":
        return new ColumnCountGetFilter(Notation.number(f, "limit"));
      case "ColumnPaginationFilter":
        if (f.has("columnOffset")) {
          return new ColumnPaginationFilter(Notation.number(f, "limit"), Notation.bytes(f, "columnOffset"));
        }
        return new ColumnPaginationFilter(Notation.number(f, "limit"), Notation.number(f, "offset"));
      case "ColumnPrefixFilter":
        return new ColumnPrefixFilter(Notation.bytes(f, "prefix"));
      case "ColumnRangeFilter":
        return new ColumnRangeFilter(Notation.bytes(f, "min"), Notation.flag(f, "minInclusive", true),
          Notation.bytes(f, "max"), Notation.flag(f, "maxInclusive", false));
      case "ColumnValueFilter":
        return new ColumnValueFilter(Notation.bytes(f, "family"), Notation.bytes(f, "qualifier"), operator(f), comparatorOf(f));
      case "DependentColumnFilter":
        if (f.has("comparator")) {
          return new DependentColumnFilter(Notation.bytes(f, "family"), Notation.bytes(f, "qualifier"),
            Notation.flag(f, "drop", false), operator(f), comparatorOf(f));
        }
        return new DependentColumnFilter(Notation.bytes(f, "family"), Notation.bytes(f, "qualifier"), Notation.flag(f, "drop", false));
      case "FamilyFilter":
        return new FamilyFilter(operator(f), comparatorOf(f));
      case "FilterList": {
        List<Filter> parts = new ArrayList<>();
        for (JsonElement e : f.getAsJsonArray("filters")) {
          parts.add(filter(e.getAsJsonObject(), t0));
        }
        boolean all = Notation.text(f, "operator").equals("AND");
        return new FilterList(all ? FilterList.Operator.MUST_PASS_ALL : FilterList.Operator.MUST_PASS_ONE, parts);
      }
      case "FirstKeyOnlyFilter":
        return new FirstKeyOnlyFilter();
      case "FirstKeyValueMatchingQualifiersFilter": {
        TreeSet<byte[]> qualifiers = new TreeSet<>(Bytes.BYTES_COMPARATOR);
        qualifiers.addAll(many(f, "qualifiers"));
        return new FirstKeyValueMatchingQualifiersFilter(qualifiers);
      }
      case "FuzzyRowFilter": {
        List<Pair<byte[], byte[]>> pairs = new ArrayList<>();
        for (JsonElement e : f.getAsJsonArray("pairs")) {
          JsonArray p = e.getAsJsonArray();
          pairs.add(new Pair<>(Notation.bytes(p.get(0)), Notation.bytes(p.get(1))));
        }
        return new FuzzyRowFilter(pairs);
      }
      case "InclusiveStopFilter":
        return new InclusiveStopFilter(Notation.bytes(f, "row"));
      case "KeyOnlyFilter":
        return new KeyOnlyFilter(Notation.flag(f, "lenAsVal", false));
      case "MultipleColumnPrefixFilter":
        return new MultipleColumnPrefixFilter(many(f, "prefixes").toArray(new byte[0][]));
      case "MultiRowRangeFilter": {
        if (f.has("prefixes")) {
          return new MultiRowRangeFilter(many(f, "prefixes").toArray(new byte[0][]));
        }
        List<MultiRowRangeFilter.RowRange> ranges = new ArrayList<>();
        for (JsonElement e : f.getAsJsonArray("ranges")) {
          JsonObject r = e.getAsJsonObject();
          ranges.add(new MultiRowRangeFilter.RowRange(Notation.bytes(r, "start"), Notation.flag(r, "startInclusive", true),
            Notation.bytes(r, "stop"), Notation.flag(r, "stopInclusive", false)));
        }
        return new MultiRowRangeFilter(ranges);
      }
      case "PageFilter":
        return new PageFilter(f.get("size").getAsLong());
      case "PrefixFilter":
        return new PrefixFilter(Notation.bytes(f, "prefix"));
      case "QualifierFilter":
        return new QualifierFilter(operator(f), comparatorOf(f));
      case "RandomRowFilter":
        return new RandomRowFilter(f.get("chance").getAsFloat());
      case "RowFilter":
        return new RowFilter(operator(f), comparatorOf(f));
      case "SingleColumnValueFilter":
        return options(f, new SingleColumnValueFilter(Notation.bytes(f, "family"), Notation.bytes(f, "qualifier"), operator(f), comparatorOf(f)));
      case "SingleColumnValueExcludeFilter":
        return options(f, new SingleColumnValueExcludeFilter(Notation.bytes(f, "family"), Notation.bytes(f, "qualifier"), operator(f), comparatorOf(f)));
      case "SkipFilter":
        return new SkipFilter(filter(f.getAsJsonObject("filter"), t0));
      case "WhileMatchFilter":
        return new WhileMatchFilter(filter(f.getAsJsonObject("filter"), t0));
      case "TimestampsFilter": {
        List<Long> times = new ArrayList<>();
        for (JsonElement e : f.getAsJsonArray("timestamps")) {
          times.add(Notation.time(e, t0));
        }
        return f.has("canHint") ? new TimestampsFilter(times, Notation.flag(f, "canHint", false)) : new TimestampsFilter(times);
      }
      case "ValueFilter":
        return new ValueFilter(operator(f), comparatorOf(f));
      default:
        throw new Inexpressible("filter " + type);
    }
  }

  private static Filter options(JsonObject f, SingleColumnValueFilter s) {
    s.setFilterIfMissing(Notation.flag(f, "filterIfMissing", false));
    s.setLatestVersionOnly(Notation.flag(f, "latestVersionOnly", true));
    return s;
  }

  private static List<byte[]> many(JsonObject f, String key) {
    List<byte[]> out = new ArrayList<>();
    f.getAsJsonArray(key).forEach(e -> out.add(Notation.bytes(e)));
    return out;
  }

  static CompareOperator operator(JsonObject o) {
    return CompareOperator.valueOf(Notation.text(o, "op"));
  }

  private static ByteArrayComparable comparatorOf(JsonObject f) {
    return comparator(f.getAsJsonObject("comparator"));
  }

  static ByteArrayComparable comparator(JsonObject c) {
    String type = Notation.text(c, "type");
    switch (type) {
      case "binary":
        return new BinaryComparator(Notation.bytes(c, "value"));
      case "binaryPrefix":
        return new BinaryPrefixComparator(Notation.bytes(c, "value"));
      case "binaryComponent":
        return new BinaryComponentComparator(Notation.bytes(c, "value"), Notation.number(c, "offset"));
      case "bit":
        return new BitComparator(Notation.bytes(c, "value"), BitComparator.BitwiseOp.valueOf(Notation.text(c, "bitOp")));
      case "long":
        return new LongComparator(c.get("value").getAsLong());
      case "null":
        return new NullComparator();
      case "substring":
        return new SubstringComparator(Notation.text(c, "value"));
      case "bigDecimal":
        return new BigDecimalComparator(new BigDecimal(Notation.text(c, "value")));
      case "regex": {
        RegexStringComparator.EngineType engine = c.has("engine")
          ? RegexStringComparator.EngineType.valueOf(Notation.text(c, "engine")) : RegexStringComparator.EngineType.JAVA;
        return c.has("flags") ? new RegexStringComparator(Notation.text(c, "pattern"), Notation.number(c, "flags"), engine)
          : new RegexStringComparator(Notation.text(c, "pattern"), engine);
      }
      default:
        throw new Inexpressible("comparator " + type);
    }
  }

  /** What the client sends for a filter. */
  static JsonObject sent(Filter f) throws IOException {
    FilterProtos.Filter p = ProtobufUtil.toFilter(f);
    JsonObject o = new JsonObject();
    o.addProperty("name", p.getName());
    o.addProperty("hex", Bytes.toHex(p.getSerializedFilter().toByteArray()));
    return o;
  }

  /** The tree of a filter that was parsed from the filter language. */
  static JsonObject tree(Filter f) throws Exception {
    JsonObject o = new JsonObject();
    o.addProperty("type", f.getClass().getSimpleName());
    if (f instanceof FilterList) {
      FilterList l = (FilterList) f;
      o.addProperty("operator", l.getOperator() == FilterList.Operator.MUST_PASS_ALL ? "AND" : "OR");
      JsonArray parts = new JsonArray();
      for (Filter part : l.getFilters()) {
        parts.add(tree(part));
      }
      o.add("filters", parts);
    } else if (f instanceof SkipFilter) {
      o.add("filter", tree(((SkipFilter) f).getFilter()));
    } else if (f instanceof WhileMatchFilter) {
      o.add("filter", tree(((WhileMatchFilter) f).getFilter()));
    } else if (f instanceof ColumnCountGetFilter) {
      o.addProperty("limit", ((ColumnCountGetFilter) f).getLimit());
    } else if (f instanceof ColumnPaginationFilter) {
      o.addProperty("limit", ((ColumnPaginationFilter) f).getLimit());
      o.addProperty("offset", ((ColumnPaginationFilter) f).getOffset());
    } else if (f instanceof ColumnPrefixFilter) {
      o.add("prefix", Answers.bytes(((ColumnPrefixFilter) f).getPrefix()));
    } else if (f instanceof PrefixFilter) {
      o.add("prefix", Answers.bytes(((PrefixFilter) f).getPrefix()));
    } else if (f instanceof PageFilter) {
      o.addProperty("size", ((PageFilter) f).getPageSize());
    } else if (f instanceof InclusiveStopFilter) {
      o.add("row", Answers.bytes(((InclusiveStopFilter) f).getStopRowKey()));
    } else if (f instanceof ColumnRangeFilter) {
      ColumnRangeFilter r = (ColumnRangeFilter) f;
      o.add("min", Answers.bytes(r.getMinColumn()));
      o.addProperty("minInclusive", r.getMinColumnInclusive());
      o.add("max", Answers.bytes(r.getMaxColumn()));
      o.addProperty("maxInclusive", r.getMaxColumnInclusive());
    } else if (f instanceof MultipleColumnPrefixFilter) {
      JsonArray prefixes = new JsonArray();
      for (byte[] p : ((MultipleColumnPrefixFilter) f).getPrefix()) {
        prefixes.add(Answers.bytes(p));
      }
      o.add("prefixes", prefixes);
    } else if (f instanceof TimestampsFilter) {
      JsonArray times = new JsonArray();
      ((TimestampsFilter) f).getTimestamps().forEach(times::add);
      o.add("timestamps", times);
    } else if (f instanceof DependentColumnFilter) {
      DependentColumnFilter d = (DependentColumnFilter) f;
      column(o, d.getFamily(), d.getQualifier());
      o.addProperty("drop", d.getDropDependentColumn());
      if (d.getComparator() != null) {
        compares(o, d.getCompareOperator(), d.getComparator());
      }
    } else if (f instanceof CompareFilter) {
      compares(o, ((CompareFilter) f).getCompareOperator(), ((CompareFilter) f).getComparator());
    } else if (f instanceof SingleColumnValueFilter) {
      SingleColumnValueFilter s = (SingleColumnValueFilter) f;
      column(o, s.getFamily(), s.getQualifier());
      compares(o, s.getCompareOperator(), s.getComparator());
      o.addProperty("filterIfMissing", s.getFilterIfMissing());
      o.addProperty("latestVersionOnly", s.getLatestVersionOnly());
    } else if (f instanceof ColumnValueFilter) {
      ColumnValueFilter s = (ColumnValueFilter) f;
      column(o, s.getFamily(), s.getQualifier());
      compares(o, s.getCompareOperator(), s.getComparator());
    } else if (f instanceof KeyOnlyFilter) {
      o.addProperty("lenAsVal", FilterProtos.KeyOnlyFilter.parseFrom(f.toByteArray()).getLenAsVal());
    }
    return o;
  }

  private static void column(JsonObject o, byte[] family, byte[] qualifier) {
    o.add("family", Answers.bytes(family));
    o.add("qualifier", Answers.bytes(qualifier));
  }

  private static void compares(JsonObject o, CompareOperator operator, ByteArrayComparable c) throws Exception {
    o.addProperty("op", operator.name());
    JsonObject t = new JsonObject();
    if (c instanceof RegexStringComparator) {
      ComparatorProtos.RegexStringComparator p = ComparatorProtos.RegexStringComparator.parseFrom(c.toByteArray());
      t.addProperty("type", "regex");
      t.addProperty("pattern", p.getPattern());
      t.addProperty("flags", p.getPatternFlags());
      t.addProperty("engine", p.getEngine());
    } else if (c instanceof SubstringComparator) {
      t.addProperty("type", "substring");
      t.add("value", new JsonPrimitive(Bytes.toString(c.getValue())));
    } else {
      t.addProperty("type", c instanceof BinaryPrefixComparator ? "binaryPrefix" : c instanceof BinaryComparator ? "binary" : c.getClass().getSimpleName());
      t.add("value", Answers.bytes(c.getValue()));
    }
    o.add("comparator", t);
  }
}

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.server.auth.DigestAuthenticationProvider;

/** What Curator, and the Java client below it, hear from a ZooKeeper: one line a step, without what differs between any two runs. */
public class CuratorGuest {
  static CuratorFramework c;
  static long base;
  static final LinkedBlockingQueue<String> events = new LinkedBlockingQueue<>();

  static String show(Object o) throws Exception {
    if (o instanceof Stat) {
      Stat s = (Stat) o;
      boolean times = Math.abs(System.currentTimeMillis() - s.getCtime()) < 600_000 && s.getMtime() >= s.getCtime();
      long me = c.getZookeeperClient().getZooKeeper().getSessionId();
      return String.format("stat(c%d m%d p%d v%d cv%d av%d owner=%s len=%d kids=%d times=%b)", s.getCzxid() - base, s.getMzxid() - base, s.getPzxid() - base,
          s.getVersion(), s.getCversion(), s.getAversion(), s.getEphemeralOwner() == me ? "me" : s.getEphemeralOwner(), s.getDataLength(), s.getNumChildren(), times);
    }
    if (o instanceof byte[]) {
      return "'" + new String((byte[]) o) + "'";
    }
    if (o instanceof List) {
      List<String> all = new ArrayList<>();
      for (Object x : (List<?>) o) {
        all.add(show(x));
      }
      Collections.sort(all);
      return all.toString();
    }
    if (o instanceof CuratorTransactionResult) {
      CuratorTransactionResult r = (CuratorTransactionResult) o;
      return r.getType() + " " + r.getForPath() + " " + r.getResultPath() + " " + show(r.getResultStat()) + " " + r.getError();
    }
    return String.valueOf(o);
  }

  static void step(String name, Callable<Object> f) throws Exception {
    String out;
    try {
      out = show(f.call());
    } catch (KeeperException e) {
      out = e.code() + (e.getResults() == null ? "" : " " + results(e)) + " on " + e.getPath();
    } catch (IllegalArgumentException | IllegalStateException e) {
      out = e.getClass().getSimpleName();
    }
    System.out.println(name + ": " + out);
  }

  static String results(KeeperException e) {
    List<String> all = new ArrayList<>();
    for (org.apache.zookeeper.OpResult r : e.getResults()) {
      all.add(r instanceof org.apache.zookeeper.OpResult.ErrorResult ? String.valueOf(((org.apache.zookeeper.OpResult.ErrorResult) r).getErr()) : r.getClass().getSimpleName());
    }
    return all.toString();
  }

  static Watcher watcher(String name) {
    return e -> events.add(name + " " + e.getType() + " " + e.getState() + " " + e.getPath());
  }

  static void told(int n) throws Exception {
    List<String> got = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      String e = events.poll(10, TimeUnit.SECONDS);
      got.add(e);
    }
    System.out.println("events: " + got);
  }

  public static void main(String[] args) throws Exception {
    c = CuratorFrameworkFactory.builder().connectString(args[0]).namespace("curator").sessionTimeoutMs(10_000).connectionTimeoutMs(15_000)
        .retryPolicy(new RetryOneTime(50)).ensembleTracker(false).build();
    c.start();
    c.blockUntilConnected();
    c.create().forPath("/a", "one".getBytes());
    base = c.checkExists().forPath("/a").getCzxid();

    step("timeout", () -> c.getZookeeperClient().getZooKeeper().getSessionTimeout());
    step("get", () -> c.getData().forPath("/a"));
    Stat read = new Stat();
    step("get and stat", () -> show(c.getData().storingStatIn(read).forPath("/a")) + show(read));
    step("create again", () -> c.create().forPath("/a"));
    step("create orphan", () -> c.create().forPath("/x/y"));
    step("create with parents", () -> c.create().creatingParentsIfNeeded().forPath("/p/q/r", "deep".getBytes()));
    step("create with containers", () -> c.create().creatingParentContainersIfNeeded().forPath("/c/q/r", "deep".getBytes()));
    step("container's stat", () -> c.checkExists().forPath("/c/q"));
    Stat made = new Stat();
    step("create and stat", () -> c.create().storingStatIn(made).withMode(CreateMode.EPHEMERAL).forPath("/e", "e".getBytes()) + show(made));
    step("below ephemeral", () -> c.create().forPath("/e/f"));
    step("sequential", () -> c.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/s-"));
    step("ephemeral sequential", () -> c.create().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/s-"));
    step("protected", () -> c.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/s-").replaceAll("_c_[-0-9a-f]+", "_c_ID"));
    step("container", () -> c.create().withMode(CreateMode.CONTAINER).forPath("/box"));
    step("ttl", () -> c.create().withTtl(5000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/ttl"));
    step("ttl sequential", () -> c.create().withTtl(5000).withMode(CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL).forPath("/ttl"));
    step("idempotent create", () -> c.create().idempotent().forPath("/a", "one".getBytes()));
    step("create or set", () -> c.create().orSetData().forPath("/a", "two".getBytes()));
    step("set", () -> c.setData().withVersion(1).forPath("/a", "three".getBytes()));
    step("set stale", () -> c.setData().withVersion(1).forPath("/a", "four".getBytes()));
    step("set missing", () -> c.setData().forPath("/none", "x".getBytes()));
    step("children", () -> { List<String> l = c.getChildren().forPath("/"); l.removeIf(n -> n.startsWith("_c_")); return l; });
    Stat kids = new Stat();
    step("children and stat", () -> show(c.getChildren().storingStatIn(kids).forPath("/p")) + show(kids));
    step("delete full", () -> c.delete().forPath("/p"));
    step("delete stale", () -> c.delete().withVersion(9).forPath("/p/q/r"));
    step("delete with children", () -> c.delete().deletingChildrenIfNeeded().forPath("/p"));
    step("delete quietly", () -> c.delete().quietly().forPath("/p"));
    step("sync", () -> c.sync().forPath("/a"));

    step("transaction", () -> c.transaction().forOperations(c.transactionOp().check().withVersion(2).forPath("/a"), c.transactionOp().create().forPath("/t", "t".getBytes()),
        c.transactionOp().setData().forPath("/t", "u".getBytes()), c.transactionOp().create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/t/kid-"),
        c.transactionOp().delete().forPath("/t/kid-0000000000")));
    step("failing transaction", () -> c.transaction().forOperations(c.transactionOp().setData().forPath("/t", "never".getBytes()),
        c.transactionOp().check().withVersion(99).forPath("/t"), c.transactionOp().delete().forPath("/t")));

    // Watches.
    c.getData().usingWatcher(watcher("data")).forPath("/a");
    c.checkExists().usingWatcher(watcher("exists")).forPath("/later");
    c.getChildren().usingWatcher(watcher("children")).forPath("/");
    c.setData().forPath("/a", "watched".getBytes());
    c.setData().forPath("/a", "not watched".getBytes());
    told(1);
    c.create().forPath("/later");
    told(2);
    c.watchers().add().withMode(AddWatchMode.PERSISTENT).usingWatcher(watcher("persistent")).forPath("/w");
    c.create().forPath("/w");
    c.setData().forPath("/w", "1".getBytes());
    c.create().forPath("/w/kid");
    c.delete().forPath("/w/kid");
    told(4);
    step("remove watches", () -> c.watchers().removeAll().ofType(Watcher.WatcherType.Any).forPath("/w"));
    told(1);
    step("remove watches again", () -> c.watchers().removeAll().ofType(Watcher.WatcherType.Any).forPath("/w"));
    c.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(watcher("recursive")).forPath("/rw");
    c.create().creatingParentsIfNeeded().forPath("/rw/deep/er");
    c.setData().forPath("/rw/deep/er", "1".getBytes());
    c.delete().deletingChildrenIfNeeded().forPath("/rw");
    told(7);
    Watcher one = watcher("one");
    c.getData().usingWatcher(one).forPath("/t");
    c.getChildren().usingWatcher(one).forPath("/t");
    step("remove one data watch", () -> c.watchers().remove(one).ofType(Watcher.WatcherType.Data).forPath("/t"));
    step("remove one child watch", () -> c.watchers().remove(one).ofType(Watcher.WatcherType.Children).forPath("/t"));
    told(2);

    // Identities.
    List<ACL> mine = List.of(new ACL(ZooDefs.Perms.ALL, new Id("digest", DigestAuthenticationProvider.generateDigest("user:secret"))), new ACL(ZooDefs.Perms.READ, ZooDefs.Ids.ANYONE_ID_UNSAFE));
    step("create for somebody", () -> c.create().withACL(mine).forPath("/mine", "m".getBytes()));
    step("acl", () -> c.getACL().forPath("/mine"));
    step("write without auth", () -> c.setData().forPath("/mine", "x".getBytes()));
    step("set acl without auth", () -> c.setACL().withACL(ZooDefs.Ids.OPEN_ACL_UNSAFE).forPath("/mine"));
    step("invalid acl", () -> c.create().withACL(List.of(new ACL(31, new Id("nonsense", "x")))).forPath("/bad"));
    step("creator acl without auth", () -> c.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/bad"));
    org.apache.zookeeper.ZooKeeper zk = c.getZookeeperClient().getZooKeeper();
    zk.addAuthInfo("digest", "user:secret".getBytes());
    step("write with auth", () -> c.setData().forPath("/mine", "x".getBytes()));
    step("acl with auth", () -> c.getACL().forPath("/mine"));
    step("set acl stale", () -> c.setACL().withVersion(7).withACL(mine).forPath("/mine"));
    step("set acl", () -> c.setACL().withACL(mine).forPath("/mine"));
    step("creator acl", () -> c.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/created"));
    step("creator's acl", () -> c.getACL().forPath("/created"));
    step("who am I", () -> { List<String> ids = new ArrayList<>(); zk.whoAmI().forEach(i -> ids.add(i.getAuthScheme() + ":" + i.getUser())); return ids; });

    // The rest of the Java client.
    step("ephemerals", () -> { List<String> l = zk.getEphemerals("/curator/e"); return l; });
    step("number of all children", () -> zk.getAllChildrenNumber("/curator/c"));
    step("multi read", () -> { List<String> all = new ArrayList<>();
      for (org.apache.zookeeper.OpResult r : zk.multi(List.of(org.apache.zookeeper.Op.getData("/curator/a"), org.apache.zookeeper.Op.getChildren("/curator/c"), org.apache.zookeeper.Op.getData("/curator/none")))) {
        all.add(r.getClass().getSimpleName() + (r instanceof org.apache.zookeeper.OpResult.ErrorResult ? ((org.apache.zookeeper.OpResult.ErrorResult) r).getErr() : ""));
      }
      return all; });
    step("config", () -> { Stat s = new Stat(); byte[] b = zk.getConfig(false, s); return (b == null ? "null" : "'" + new String(b) + "'") + " v" + s.getVersion() + " len" + s.getDataLength(); });
    step("reconfig", () -> new org.apache.zookeeper.admin.ZooKeeperAdmin(args[0], 10_000, e -> {}).reconfigure("server.9=localhost:1:2", null, null, -1, new Stat()));

    // Recipes.
    LinkedBlockingQueue<String> cached = new LinkedBlockingQueue<>();
    CuratorCache cache = CuratorCache.build(c, "/cache");
    cache.listenable().addListener(CuratorCacheListener.builder().forAll((t, old, now) -> cached.add(t + " " + (now == null ? old : now).getPath())).forInitialized(() -> cached.add("ready")).build());
    c.create().forPath("/cache");
    cache.start();
    System.out.println("cache: " + cached.poll(10, TimeUnit.SECONDS) + " " + cached.poll(10, TimeUnit.SECONDS));
    c.create().forPath("/cache/one", "1".getBytes());
    System.out.println("cache: " + cached.poll(10, TimeUnit.SECONDS));
    c.setData().forPath("/cache/one", "2".getBytes());
    System.out.println("cache: " + cached.poll(10, TimeUnit.SECONDS));
    c.delete().forPath("/cache/one");
    System.out.println("cache: " + cached.poll(10, TimeUnit.SECONDS));
    cache.close();
    InterProcessMutex lock = new InterProcessMutex(c, "/lock");
    step("lock", () -> lock.acquire(10, TimeUnit.SECONDS));
    step("participants", () -> lock.getParticipantNodes().size());
    lock.release();
    LeaderLatch latch = new LeaderLatch(c, "/latch", "me");
    latch.start();
    step("latch", () -> latch.await(10, TimeUnit.SECONDS));
    step("leader", () -> latch.getLeader());
    latch.close();
    DistributedAtomicLong counter = new DistributedAtomicLong(c, "/counter", new RetryOneTime(10));
    step("add", () -> counter.add(5L).postValue());
    step("subtract", () -> counter.subtract(7L).postValue());
    PersistentNode node = new PersistentNode(c, CreateMode.EPHEMERAL, false, "/node", "n".getBytes());
    node.start();
    step("persistent node", () -> node.waitForInitialCreate(10, TimeUnit.SECONDS));
    node.close();
    GroupMember member = new GroupMember(c, "/group", "me", "here".getBytes());
    member.start();
    for (int i = 0; i < 1000 && member.getCurrentMembers().isEmpty(); i++) {
      Thread.sleep(10);
    }
    step("group", () -> new ArrayList<>(member.getCurrentMembers().keySet()));
    member.close();
    step("delete all", () -> c.delete().guaranteed().deletingChildrenIfNeeded().forPath("/created"));
    c.close();
    System.exit(0);
  }
}

"""What kazoo hears from a ZooKeeper: one line a step, without what differs between any two runs."""
import sys
import threading
import time

from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.exceptions import KazooException
from kazoo.protocol.states import ZnodeStat
from kazoo.security import make_acl, make_digest_acl, OPEN_ACL_UNSAFE
from kazoo.recipe.watchers import ChildrenWatch, DataWatch

ADDRESS = sys.argv[1]
ROOT = "/kazoo"
base = 0  # zxid of the first node
events = []
heard = threading.Condition()


def show(v):
    if isinstance(v, ZnodeStat):
        zxid = lambda z: z - base
        return (f"stat(c{zxid(v.czxid)} m{zxid(v.mzxid)} p{zxid(v.pzxid)} v{v.version} cv{v.cversion} av{v.aversion} "
                f"owner={'me' if v.ephemeralOwner == zk.client_id[0] else v.ephemeralOwner} len={v.dataLength} kids={v.numChildren} "
                f"times={'ok' if abs(v.ctime / 1000 - time.time()) < 600 and v.mtime >= v.ctime else (v.ctime, v.mtime)})")
    if isinstance(v, tuple):
        return "(" + ", ".join(show(x) for x in v) + ")"
    if isinstance(v, list):
        return "[" + ", ".join(sorted(show(x) for x in v)) + "]"
    if isinstance(v, Exception):
        return type(v).__name__
    return repr(v)


def step(name, f, *args, **kwargs):
    try:
        out = show(f(*args, **kwargs))
    except (KazooException, ValueError, TypeError) as e:
        out = type(e).__name__
    print(f"{name}: {out}", flush=True)


def watcher(name):
    def hear(e):
        with heard:
            events.append(f"{name} {e.type} {e.state} {e.path}")
            heard.notify_all()
    return hear


def told(n):
    """Prints the next n events, in the order they came."""
    with heard:
        heard.wait_for(lambda: len(events) >= n, 10)
        got = list(events)
        events.clear()
    print(f"events: {got}", flush=True)


zk = KazooClient(hosts=ADDRESS, timeout=10)
zk.start(timeout=20)
if zk.exists(ROOT):
    zk.delete(ROOT, recursive=True)
zk.create(ROOT, b"root")
base = zk.get(ROOT)[1].czxid
print("timeout:", zk._session_timeout)

# Nodes.
step("create", zk.create, ROOT + "/a", b"one", include_data=True)
step("create again", zk.create, ROOT + "/a")
step("create orphan", zk.create, ROOT + "/x/y")
step("makepath", zk.create, ROOT + "/p/q/r", b"deep", makepath=True)
step("ephemeral", zk.create, ROOT + "/e", b"e", ephemeral=True, include_data=True)
step("below ephemeral", zk.create, ROOT + "/e/f")
step("sequence", zk.create, ROOT + "/s-", sequence=True)
step("sequence again", zk.create, ROOT + "/s-", sequence=True, ephemeral=True)
step("get", zk.get, ROOT + "/a")
step("get missing", zk.get, ROOT + "/none")
step("exists", zk.exists, ROOT + "/e")
step("exists missing", zk.exists, ROOT + "/none")
step("set", zk.set, ROOT + "/a", b"two", 0)
step("set stale", zk.set, ROOT + "/a", b"three", 0)
step("set missing", zk.set, ROOT + "/none", b"")
step("children", zk.get_children, ROOT)
step("children and stat", zk.get_children, ROOT, include_data=True)
step("children missing", zk.get_children, ROOT + "/none")
step("delete full", zk.delete, ROOT + "/p")
step("delete stale", zk.delete, ROOT + "/a", 7)
step("delete", zk.delete, ROOT + "/p/q/r")
step("delete missing", zk.delete, ROOT + "/p/q/r")
step("ensure", zk.ensure_path, ROOT + "/p/q/r/s")
step("sync", zk.sync, ROOT)

# Transactions.
t = zk.transaction()
t.check(ROOT + "/a", 1)
t.create(ROOT + "/t", b"t")
t.set_data(ROOT + "/t", b"u")
t.create(ROOT + "/t/kid")
t.delete(ROOT + "/t/kid")
step("transaction", t.commit)
t = zk.transaction()
t.set_data(ROOT + "/t", b"never")
t.check(ROOT + "/t", 99)
t.delete(ROOT + "/t")
step("failing transaction", t.commit)
step("after it", zk.get, ROOT + "/t")

# One-shot watches.
zk.get(ROOT + "/a", watch=watcher("data"))
zk.exists(ROOT + "/later", watch=watcher("exists"))
zk.get_children(ROOT, watch=watcher("children"))
zk.set(ROOT + "/a", b"watched")
zk.set(ROOT + "/a", b"not watched")
told(1)
zk.create(ROOT + "/later")
told(2)
zk.delete(ROOT + "/later")
zk.get(ROOT + "/t", watch=watcher("to be deleted"))
zk.delete(ROOT + "/t")
told(1)


# Identities.
step("auth", zk.add_auth, "digest", "user:secret")
mine = make_digest_acl("user", "secret", all=True)
step("create mine", zk.create, ROOT + "/mine", b"m", acl=[mine])
step("acls", zk.get_acls, ROOT + "/mine")
step("read for all", zk.set_acls, ROOT + "/mine", [mine, make_acl("world", "anyone", read=True)])
step("set acls stale", zk.set_acls, ROOT + "/mine", [mine], 7)
step("invalid acl", zk.set_acls, ROOT + "/mine", [make_acl("nonsense", "x", read=True)])
other = KazooClient(hosts=ADDRESS + ROOT, timeout=10)  # under a chroot
other.start(timeout=20)
step("other reads", lambda: other.get("/mine")[0])
step("other writes", other.set, "/mine", b"x")
step("other sets acls", other.set_acls, "/mine", OPEN_ACL_UNSAFE)
step("other's children", other.get_children, "/")
step("other's ephemeral", other.create, "/theirs", b"x", ephemeral=True)
step("seen from outside", lambda: zk.get(ROOT + "/theirs")[0])

# A session that ends, and one whose connection is lost.
zk.exists(ROOT + "/theirs", watch=watcher("their end"))
other.stop()
other.close()
told(1)
step("gone with its session", zk.exists, ROOT + "/theirs")
states = []
zk.add_listener(lambda s: states.append(s) and None)
zk.get_children(ROOT, watch=watcher("after reconnecting"))
before = zk.client_id
zk._connection._socket.shutdown(2)
deadline = time.time() + 20
while time.time() < deadline and not (len(states) >= 2 and zk.connected):
    time.sleep(0.01)
print("states:", states, "same session:", before == zk.client_id, flush=True)
step("my ephemeral still there", zk.exists, ROOT + "/e")
zk.create(ROOT + "/wake")
told(1)

# Recipes.
seen = []
DataWatch(zk, ROOT + "/a", lambda data, stat: seen.append((data, stat and stat.version)) and None)
ChildrenWatch(zk, ROOT + "/p", lambda kids: seen.append(sorted(kids)) and None)
zk.set(ROOT + "/a", b"for the recipe")
zk.create(ROOT + "/p/new")
deadline = time.time() + 10
while time.time() < deadline and len(seen) < 4:
    time.sleep(0.01)
print("recipes:", sorted(map(str, seen)), flush=True)
lock = zk.Lock(ROOT + "/lock", "me")
step("lock", lock.acquire, timeout=10)
step("contenders", lock.contenders)
step("unlock", lock.release)
counter = zk.Counter(ROOT + "/counter")
counter += 2
counter -= 5
print("counter:", counter.value)
queue = zk.Queue(ROOT + "/queue")
queue.put(b"low", 200)
queue.put(b"high", 1)
print("queue:", queue.get(), queue.get(), queue.get())

# Reconfiguration is refused.
step("reconfig", zk.reconfig, joining="server.9=localhost:1:2", leaving=None, new_members=None)

# What operators ask.
step("version", lambda: zk.server_version()[:2])
for word in (b"ruok", b"isro"):
    step(word.decode(), zk.command, word)
step("mntr", lambda: [l.split("\t")[0] for l in zk.command(b"mntr").splitlines() if l.split("\t")[0] in
                      ("zk_version", "zk_server_state", "zk_znode_count", "zk_watch_count", "zk_ephemerals_count", "zk_num_alive_connections")])
step("delete all", zk.delete, ROOT, recursive=True)
zk.stop()
zk.close()

import socket
import unittest

from holdfast import Cluster, Refused


class Orders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        c = self.cluster
        c.post("/reset")  # under 5 ms, whatever the test before has broken
        c.post("/create", table="orders", families=["o"], splits=["m"])
        c.shell(*[f"put 'orders', 'user-{i}', 'o:state', 'open'" for i in range(5)],
                *[f"put 'orders', 'a-{i}', 'o:state', 'open'" for i in range(5)])

    def rows(self):
        return self.cluster.shell("count 'orders'")

    def test_kill_and_move(self):
        c = self.cluster
        before = c.control("GET", "/regions?table=orders")
        to = (before[0]["index"] + 1) % 3
        moved = c.post("/move", table="orders", row="a-1", to=str(to))
        self.assertEqual(moved["index"], to)
        c.post("/kill", server=str(to))
        self.assertIn("10 row(s)", self.rows())
        states = [s["state"] for s in c.control("GET", "/status")["servers"]]
        self.assertEqual(states[to], "dead")

    def test_an_answer_is_lost(self):
        c = self.cluster
        rule = c.post("/rule", method="Mutate", table="orders", action="drop-reply", times=1)
        c.shell("incr 'orders', 'user-1', 'o:count', 1")
        hit = c.control("POST", f"/rule/{rule['id']}/wait?hits=1&timeout=10s")
        self.assertEqual(hit["hits"], 1)
        self.assertIn("COUNTER VALUE = 1", c.shell("get_counter 'orders', 'user-1', 'o:count'"))
        # The event log tells of both calls.
        calls = c.control("GET", "/events?method=Mutate&table=orders")["events"]
        outcomes = [e["outcome"] for e in calls if e.get("detail") == "increment"]
        self.assertEqual(outcomes[0], "dropped")
        self.assertIn("ok", outcomes[1:])

    def test_reset(self):
        c = self.cluster
        c.post("/kill", server="meta")
        c.post("/reset")
        self.assertEqual(c.control("GET", "/status")["tables"], 2)  # HBase's own
        with self.assertRaisesRegex(Refused, "no table orders"):
            c.control("GET", "/regions?table=orders")

    def test_zookeeper(self):
        host, port = self.cluster.ready["zookeeper"].split(":")
        with socket.create_connection((host, int(port)), timeout=10) as s:
            s.sendall(b"ruok")
            self.assertEqual(s.recv(16), b"imok")


if __name__ == "__main__":
    unittest.main()

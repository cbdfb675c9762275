package readers

import (
	"fmt"
	"strings"
	"testing"
)

func dumps(text string) []*Dump {
	var out []*Dump
	r := DumpReader{Done: func(d *Dump) { out = append(out, d) }}
	r.Feed([]byte(text), 0)
	r.Close()
	return out
}

const java6 = `2012-01-05 10:00:00
Full thread dump Java HotSpot(TM) 64-Bit Server VM (20.4-b02 mixed mode):

"IPC Client" daemon prio=10 tid=0x00007f3c nid=0x5f02 waiting for monitor entry [0x00007f3c]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at org.apache.hadoop.hbase.client.HConnectionManager$HConnectionImplementation.locateRegionInMeta(HConnectionManager.java:902)
	- waiting to lock <0x0000000700aa> (a java.lang.Object)

"holder" prio=10 tid=0x00007f3d nid=0x5f03 in Object.wait() [0x00007f3d]
   java.lang.Thread.State: WAITING (on object monitor)
	at java.lang.Object.wait(Native Method)
	- waiting on <0x0000000700bb> (a org.apache.hadoop.hbase.ipc.HBaseClient$Call)
	at org.apache.hadoop.hbase.ipc.HBaseClient.call(HBaseClient.java:904)
	- locked <0x0000000700bb> (a org.apache.hadoop.hbase.ipc.HBaseClient$Call)
	at org.apache.hadoop.hbase.client.HConnectionManager$HConnectionImplementation.locateRegionInMeta(HConnectionManager.java:880)
	- locked <0x0000000700aa> (a java.lang.Object)
`

const java21 = `Full thread dump OpenJDK 64-Bit Server VM (21.0.1+12 mixed mode, sharing):

"owner" #22 [12345] prio=5 os_prio=0 cpu=1.00ms elapsed=10.00s tid=0x00007f nid=12345 waiting on condition  [0x00007f]
   java.lang.Thread.State: TIMED_WAITING (sleeping)
	at java.lang.Thread.sleep0(java.base@21.0.1/Native Method)
	at java.lang.Thread.sleep(java.base@21.0.1/Thread.java:509)
	at org.apache.hadoop.hbase.client.RpcRetryingCallerImpl.callWithRetries(RpcRetryingCallerImpl.java:139)

   Locked ownable synchronizers:
	- <0x00000007ffaa> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)

"waiter" #23 [12346] prio=5 os_prio=0 cpu=1.00ms elapsed=10.00s tid=0x00007e nid=12346 waiting on condition  [0x00007e]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(java.base@21.0.1/Native Method)
	- parking to wait for  <0x00000007ffaa> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)
	at java.util.concurrent.locks.LockSupport.park(java.base@21.0.1/LockSupport.java:221)

   Locked ownable synchronizers:
	- None
`

const openj9 = `0SECTION       TITLE subcomponent dump routine
1TIDATETIME    Date: 2021/03/04 at 10:11:12:123
0SECTION       THREADS subcomponent dump routine
3XMTHREADINFO      "worker-1" J9VMThread:0x0000000001, omrthread_t:0x01, java/lang/Thread:0x01, state:B, prio=5
3XMTHREADBLOCK     Blocked on: java/lang/Object@0x00000000E0ABC Owned by: "worker-0" (J9VMThread:0x0000000002, java/lang/Thread:0x02)
3XMTHREADINFO3           Java callstack:
4XESTACKTRACE                at org/apache/hadoop/hbase/client/ConnectionImplementation.locateRegionInMeta(ConnectionImplementation.java:900)
3XMTHREADINFO      "worker-0" J9VMThread:0x0000000002, omrthread_t:0x02, java/lang/Thread:0x02, state:CW, prio=5
4XESTACKTRACE                at java/lang/Thread.sleep(Native Method)
4XESTACKTRACE                at java/lang/Thread.sleep(Thread.java:950)
4XESTACKTRACE                at org/apache/hadoop/hbase/client/RpcRetryingCallerImpl.callWithRetries(RpcRetryingCallerImpl.java:130)
4XESTACKTRACE                at org/apache/hadoop/hbase/client/ConnectionImplementation.locateRegionInMeta(ConnectionImplementation.java:880)
5XESTACKTRACE                   (entered lock: java/lang/Object@0x00000000E0ABC, entry count: 1)
`

func TestDumpDialects(t *testing.T) {
	type lock struct{ waiter, holder, lock string }
	for name, c := range map[string]struct {
		text  string
		want  lock
		sleep string
		total int
	}{
		"HotSpot 6":  {java6, lock{"IPC Client", "holder", "0x0000000700aa"}, "", 2},
		"HotSpot 21": {java21, lock{"waiter", "owner", "0x00000007ffaa"}, "org.apache.hadoop.hbase.client.RpcRetryingCallerImpl.callWithRetries(RpcRetryingCallerImpl.java:139)", 2},
		"OpenJ9":     {openj9, lock{"worker-1", "worker-0", "java/lang/Object@0x00000000E0ABC"}, "org.apache.hadoop.hbase.client.RpcRetryingCallerImpl.callWithRetries(RpcRetryingCallerImpl.java:130)", 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := dumps(c.text)
			if len(d) != 1 || d[0].Total != c.total {
				t.Fatalf("got %d dumps %+v", len(d), d)
			}
			var got lock
			var sleep string
			for _, th := range d[0].Threads {
				if th.Waits != "" {
					got.waiter, got.lock = th.Name, th.Waits
				}
				for _, h := range th.Holds {
					if h == c.want.lock {
						got.holder = th.Name
					} else {
						t.Errorf("%s holds %s", th.Name, h)
					}
				}
				if th.SleepFrame != "" {
					sleep = th.SleepFrame
				}
			}
			if got != c.want || sleep != c.sleep {
				t.Errorf("got %+v sleeping at %q", got, sleep)
			}
		})
	}
	// Two dumps with log lines between.
	d := dumps(java6 + "\n2012-01-05 10:00:01,000 INFO x: y\n" + java6)
	if len(d) != 2 || !d[0].HasTime || d[0].Time.String() != "2012-01-05T10:00:00.000" {
		t.Errorf("got %d dumps", len(d))
	}
}

func TestDumpMemoryIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("Full thread dump x\n")
	for i := range maxThreads + 500 {
		fmt.Fprintf(&b, "\"t%d\" #1 prio=5 tid=0x1 nid=0x1 waiting for monitor entry\n   java.lang.Thread.State: BLOCKED (on object monitor)\n\t- waiting to lock <0x1> (a X)\n\n", i)
	}
	d := dumps(b.String())
	if len(d) != 1 || len(d[0].Threads) != maxThreads || d[0].Total != maxThreads+500 {
		t.Fatalf("kept %d of %d", len(d[0].Threads), d[0].Total)
	}
}

//go:build interop

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// standalone is HBase as bin/start-hbase.sh starts it: ZooKeeper, master and one
// region server in one process, on the local file system. Nothing is set but
// places and ports, and that a file system that cannot sync is put up with, as
// HBase's own conf/hbase-site.xml does.
type standalone struct {
	zk  string
	pid int
}

const standaloneSite = `<?xml version="1.0"?>
<configuration>
<property><name>hbase.cluster.distributed</name><value>false</value></property>
<property><name>hbase.unsafe.stream.capability.enforce</name><value>false</value></property>
<property><name>hbase.rootdir</name><value>file://%[1]s/data/hbase</value></property>
<property><name>hbase.tmp.dir</name><value>%[1]s/data/tmp</value></property>
<property><name>hbase.zookeeper.property.dataDir</name><value>%[1]s/data/zk</value></property>
<property><name>hbase.zookeeper.quorum</name><value>127.0.0.1</value></property>
<property><name>hbase.zookeeper.property.clientPort</name><value>%[2]d</value></property>
<property><name>hbase.master.hostname</name><value>localhost</value></property>
<property><name>hbase.regionserver.hostname</name><value>localhost</value></property>
<property><name>hbase.master.port</name><value>%[3]d</value></property>
<property><name>hbase.regionserver.port</name><value>%[4]d</value></property>
<property><name>hbase.master.info.port</name><value>-1</value></property>
<property><name>hbase.regionserver.info.port</name><value>-1</value></property>
</configuration>
`

const standaloneLog = `log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p [%t] %c{2}: %m%n
`

// startStandalone starts it with what the variable HEAP says; it ends with the
// benchmark.
func startStandalone(b *testing.B) standalone {
	dir := b.TempDir()
	jars := filepath.Join(peers.Dir(b, peers.HBase26), "lib-"+peers.HBase26)
	// Held until all are found, so that they differ.
	var held []net.Listener
	var ports []any
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		held, ports = append(held, l), append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	for _, l := range held {
		l.Close()
	}
	site := fmt.Sprintf(standaloneSite, append([]any{dir}, ports...)...)
	conf := filepath.Join(dir, "conf")
	if err := errors.Join(
		os.MkdirAll(conf, 0o755),
		os.MkdirAll(filepath.Join(dir, "logs"), 0o755),
		os.Symlink(jars, filepath.Join(dir, filepath.Base(jars))),
		os.WriteFile(filepath.Join(dir, "set"), []byte(peers.HBase26+"\n"), 0o644),
		os.WriteFile(filepath.Join(conf, "hbase-site.xml"), []byte(site), 0o644),
		os.WriteFile(filepath.Join(conf, "log4j.properties"), []byte(standaloneLog), 0o644),
	); err != nil {
		b.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "logs", "log"))
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(peers.Script(), "java", "org.apache.hadoop.hbase.master.HMaster", "start")
	cmd.Env = append(os.Environ(), "PEERS_DIR="+dir)
	cmd.Stdout, cmd.Stderr = out, out
	if err := errors.Join(cmd.Start(), out.Close()); err != nil {
		b.Fatal(err)
	}
	ctx, ended := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed, as a rule
		ended()
		close(done)
	}()
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that it has ended
		<-done
	})
	for limit := time.Now().Add(5 * time.Minute); ; {
		log, err := os.ReadFile(out.Name())
		if err != nil {
			b.Fatal(err)
		}
		if strings.Contains(string(log), "Master has completed initialization") {
			return standalone{zk: fmt.Sprintf("127.0.0.1:%d", ports[0]), pid: cmd.Process.Pid}
		}
		if ctx.Err() != nil || time.Now().After(limit) {
			b.Fatalf("HBase standalone is not up:\n%s", log[max(0, len(log)-4000):])
		}
		time.Sleep(200 * time.Millisecond)
	}
}

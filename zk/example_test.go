package zk_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/zk"
)

func Example() {
	server, err := zkserver.Start(zkserver.Config{}) // or a real ensemble
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := zk.Open(ctx, zk.Config{Servers: []string{server.Addr()}, SessionTimeout: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	if _, err := c.Create(ctx, "/greeting", []byte("hello"), zk.EphemeralNode, nil); err != nil {
		fmt.Println(err)
	}
	data, stat, err := c.Get(ctx, "/greeting")
	fmt.Println(string(data), stat.Version, err)

	_, err = c.Set(ctx, "/greeting", []byte("hello again"), 7)
	fmt.Println(errors.Is(err, zk.ErrBadVersion))
	fmt.Println(c.Budget().Verdict)
	// Output:
	// hello 0 <nil>
	// true
	// alive
}

func ExampleConn_Follow() {
	server, err := zkserver.Start(zkserver.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := zk.Open(ctx, zk.Config{Servers: []string{server.Addr()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	for node, err := range c.Follow(ctx, "/master") {
		if err != nil {
			fmt.Println(err)
			return
		}
		if node.Exists {
			fmt.Println("the master is", string(node.Data))
			return
		}
		fmt.Println("no master yet")
		if _, err := server.Create("/master", []byte("host-1"), zkserver.CreateOptions{}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// no master yet
	// the master is host-1
}

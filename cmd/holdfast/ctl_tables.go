package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

func (c *ctl) create() *cobra.Command {
	var q control.CreateRequest
	cmd := &cobra.Command{
		Use: "create TABLE [SPLIT-KEY...]", Short: "make a table with default settings, if need be of several regions", Args: argsBetween(1, 10_000),
		Example: "  holdfast ctl create orders --family f,g user-3 user-6",
		RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
			q.Table = args[0]
			for _, a := range args[1:] {
				key, err := rowArgument(a)
				if err != nil {
					return nil, err
				}
				q.Splits = append(q.Splits, key)
			}
			return nil, k.CreateTable(ctx, q)
		}),
	}
	cmd.Flags().StringSliceVar(&q.Families, "family", []string{"f"}, "column families")
	cmd.Flags().IntVar(&q.Replicas, "replicas", 1, "replicas of each region")
	return cmd
}

func (c *ctl) drop() *cobra.Command {
	return &cobra.Command{Use: "drop TABLE", Short: "disable and delete a table, if it is there", Args: argsBetween(1, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		return nil, k.DropTable(ctx, args[0])
	})}
}

func (c *ctl) group() *cobra.Command {
	var q control.GroupRequest
	cmd := &cobra.Command{
		Use: "group NAME", Short: "make a region server group, move servers and tables to it, remove it", Args: argsBetween(1, 1),
		Example: "  holdfast ctl group fast --add --server 0,1 --table orders",
		RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
			q.Name = args[0]
			return nil, k.Group(ctx, q)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&q.Add, "add", false, "make it first")
	f.BoolVar(&q.Remove, "remove", false, "remove it at the end")
	f.StringSliceVar(&q.Servers, "server", nil, "servers to move to it")
	f.StringSliceVar(&q.Tables, "table", nil, "tables to move to it")
	return cmd
}

func (c *ctl) addServer() *cobra.Command {
	return &cobra.Command{Use: "add-server", Short: "add a region server; it holds no regions until some are moved", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
		return k.AddServer(ctx)
	})}
}

func (c *ctl) reckonSpace() *cobra.Command {
	return &cobra.Command{Use: "reckon-space", Short: "count now what tables use of their space quotas, and enforce it", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
		return nil, k.ReckonSpace(ctx)
	})}
}

func (c *ctl) counters() *cobra.Command {
	return &cobra.Command{Use: "counters", Short: "numbers of calls by server, method, table and outcome", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
		return k.Counters(ctx)
	})}
}

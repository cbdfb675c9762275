package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/hbase"
)

func newConfig() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "config [ADDRESS]",
		Short: "print the client's effective configuration for an address",
		Long: `Prints every setting the client would use, its value, and where the value comes
from: a default, the address, a property of hbase-site.xml, the environment. It
then says which settings do not do what they seem to say (an rpc-timeout that is
not smaller than the operation-timeout, say), and which properties of the
hbase-site.xml are known and have no effect here, and why. What cannot be done,
such as Kerberos, is an error that says so.

The cluster need not be there: nothing is asked.

` + addressHelp,
		Example: `  holdfast config /etc/hbase/conf
  holdfast config 'hbase://zk1,zk2/hbase?operation-timeout=3s&rpc-timeout=60s'
  holdfast config conf/hbase-site.xml -o json | jq -r '.settings[] | select(.source != "default") | .name'`,
		Args: argsBetween(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			arg := ""
			if len(args) > 0 {
				arg = args[0]
			}
			addr, err := address(arg)
			if err != nil {
				return err
			}
			client, err := hbase.Open(cmd.Context(), addr)
			if err != nil {
				return err
			}
			defer client.Close()
			c := client.Config()
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), c)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), c.String())
			return err
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

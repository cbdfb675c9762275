package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/hbase"
)

func newConfig() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "config [ADDRESS]",
		Short: "print the client's effective configuration for an address",
		Long:  "Prints every option the client would use and its value.\n\n" + addressHelp,
		Args:  argsBetween(0, 1),
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
				doc := map[string]string{}
				for line := range strings.Lines(c.String()) {
					if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
						doc[name] = strings.TrimSpace(value)
					}
				}
				return writeJSON(cmd.OutOrStdout(), doc)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), c.String())
			return err
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

// Command configdoc writes docs/configuration.md: every setting of the client,
// and what becomes of every well-known property of an hbase-site.xml. It is
// made from the tables the client itself reads, so that the page cannot say
// what the code does not do.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/registry"
)

//go:generate go run . -o ../../../docs/configuration.md

func main() {
	out := flag.String("o", "docs/configuration.md", "the page to write")
	flag.Parse()
	page, err := render()
	if err == nil {
		err = os.WriteFile(*out, []byte(page), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "configdoc:", err)
		os.Exit(1)
	}
}

const intro = `<!-- Made by go generate ./internal/tools/configdoc; do not edit. -->
# Configuration

A client is told about its cluster and itself in four places. What comes later in this list wins:

1. the defaults below;
2. an ` + "`hbase-site.xml`" + ` (a file or the folder that holds one), or the options of an address:
   ` + "`hbase://zk1,zk2:2182/hbase?operation-timeout=3s&user=alice`" + `, ` + "`hbase+rpc://m1:16000,m2`" + `;
3. the environment, where nothing else is given: ` + "`HOLDFAST_ADDRESS`, `HBASE_CONF_DIR`, `HADOOP_USER_NAME`" + `;
4. the program's options: ` + "`hbase.WithOperationTimeout(3*time.Second)`" + `.

` + "`holdfast config ADDRESS`" + ` prints every setting with its value and where the value comes from, warns of settings that do
not do what they seem to say, and lists the properties that have no effect. ` + "`Client.Config().Effective()`" + ` is the same for a program.
Unknown options of an address are errors that list the known ones; unknown properties of an ` + "`hbase-site.xml`" + ` are ignored,
since the file is shared with servers.

## Time

A call ends with its context, or after operation-timeout. Within that time it makes as many attempts as it takes. rpc-timeout bounds
one attempt. If it is not smaller than the operation's time (` + "`hbase.rpc.timeout`" + ` 60 s with ` + "`hbase.client.operation.timeout`" + ` 3 s, or
a context that ends sooner), Java's client makes one attempt, and a lost answer ends the operation. This client then gives the first
two attempts a quarter of the time each (but no less than 200 ms) and the third the rest; an attempt of a scanner's step gets half of
the step's time. A request that must not be repeated once it was sent (a check-and-mutate) is bounded by the operation's time alone.

## Settings

Times in addresses have a unit (` + "`500ms`, `10s`, `2m`" + `); in an ` + "`hbase-site.xml`" + ` a plain number counts as Java has it, mostly
milliseconds. A dash in the last column: no property sets it. Settings marked * can only be set by the program.

| setting | default | what it does | property |
|---|---|---|---|
`

func render() (string, error) {
	var b strings.Builder
	b.WriteString(intro)
	//holdfast:allow context a client that is only asked for its defaults
	client, err := hbase.Open(context.Background(), "hbase://localhost", hbase.WithUser("(of the process)"))
	if err != nil {
		return "", err
	}
	defer client.Close()
	known := map[string]bool{}
	for _, name := range registry.Known() {
		known[name] = true
	}
	for _, s := range client.Config().Effective() {
		if s.Name == "address" {
			continue
		}
		name, property := s.Name, "-"
		if !known[name] {
			name += " *"
		}
		if s.Property != "" {
			property = "`" + s.Property + "`"
		}
		def := s.Default
		if def == "" {
			def = "-"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, def, s.Doc, property)
	}
	b.WriteString(`
## Properties of hbase-site.xml

What this client makes of the properties that Java's client knows. *option*: sets the setting named; values outside its range are
clipped, and 0 or less means "no bound" for times. *address*: says where the cluster is. *ignored*: known, without effect, for the
reason given. *refused*: an error, if it asks for what is not there.

| property | use | setting | unit | how, or why not |
|---|---|---|---|---|
`)
	for _, p := range registry.Properties() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", p.Key, p.Use, p.Option, p.Unit, strings.ReplaceAll(p.Note, "|", "\\|"))
	}
	return b.String(), nil
}

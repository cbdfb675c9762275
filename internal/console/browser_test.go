//go:build browser

package console_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

// The console in a real browser: make test-browser. With -args -shots DIR, it
// leaves pictures there.
var shots = flag.String("shots", "", "folder for screenshots")

// underLoad starts a cluster with tables and a client that reads and writes
// until the test ends.
func underLoad(t *testing.T) *minihbase.Cluster {
	t.Helper()
	ctx := t.Context()
	c := up(t, minihbase.Options{BackupMasters: 1})
	for name, splits := range map[string]string{"orders": "bdfhjlnpr", "users": "gmt"} {
		var keys [][]byte
		for _, b := range []byte(splits) {
			keys = append(keys, []byte{b})
		}
		if err := c.CreateTable(ctx, name, []string{"f", "meta"}, keys...); err != nil {
			t.Fatal(err)
		}
	}
	client, err := hbase.Open(ctx, c.Address())
	if err != nil {
		t.Fatal(err)
	}
	orders, err := client.Table("orders")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		put := hbase.NewPut(fmt.Sprintf("%c-%04d", 'a'+i%20, i)).Set("f", "state", []byte("open")).Set("f", "total", []byte{0, 0, byte(i), 0xff}).Set("meta", "note", []byte("grüße"))
		if err := orders.Put(ctx, put); err != nil {
			t.Fatal(err)
		}
	}
	loop, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := 0; loop.Err() == nil; i++ {
				row := fmt.Sprintf("%c-%04d", 'a'+(i+w)%20, i%1000)
				err := orders.Put(loop, hbase.NewPut(row).Set("f", "state", bytes.Repeat([]byte("x"), i%30)))
				if err == nil {
					_, err = orders.Get(loop, hbase.NewGet(row))
				}
				// Rules of the test make calls fail; a reset drops the table.
				if err != nil && !errors.Is(err, context.Canceled) {
					<-time.After(100 * time.Millisecond)
				}
				<-time.After(2 * time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { stop(); wg.Wait(); client.Close() })
	return c
}

func TestBrowserLooks(t *testing.T) {
	c := underLoad(t)
	b := startBrowser(t)
	p := b.open(c.Control(), look{width: 1280, height: 900})
	p.shows("rs 0", "rs 2", "orders (10)")
	p.until("Number(document.querySelectorAll('.card b')[4].textContent) > 0")
	for _, l := range []struct {
		name string
		look
	}{{"1280-light", look{width: 1280, height: 900}}, {"1280-dark", look{width: 1280, height: 900, dark: true}}, {"400-light", look{width: 400, height: 860}}, {"400-dark", look{width: 400, height: 860, dark: true, still: true}}} {
		p.look(l.look)
		for _, view := range []string{"cluster", "load", "events?kind=rpc", "tables?table=orders&from=c", "faults", "connect"} {
			p.eval("location.hash = '"+view+"'", nil)
			p.until("document.querySelector('[aria-current]') && !document.body.innerText.includes('Looking at')")
			if view == "tables?table=orders&from=c" {
				p.shows("c-0002", `gr\xC3\xBC\xC3\x9Fe`)
			}
			if view == "events?kind=rpc" {
				p.until("document.querySelectorAll('tbody tr').length > 20")
			}
			// Nothing is wider than the screen, except what scrolls by itself.
			var width int
			p.eval("document.documentElement.scrollWidth", &width)
			if width > l.width {
				t.Errorf("%s, %s: %d pixels wide", l.name, view, width)
			}
			// What can be used has a name.
			var nameless []string
			p.eval(`[...document.querySelectorAll('button, input, select, a')].filter((e) => e.offsetParent && !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || e.title)).map((e) => e.outerHTML)`, &nameless)
			if len(nameless) > 0 {
				t.Errorf("%s: nameless: %v", view, nameless)
			}
			short, _, _ := strings.Cut(view, "?")
			p.shot(l.name + "-" + short)
			if l.width == 400 || short == "tables" || short == "faults" {
				p.eval("scrollTo(0, document.body.scrollHeight / 2)", nil)
				p.shot(l.name + "-" + short + "-below")
			}
		}
	}
	if s := b.complaints(); len(s) > 0 {
		t.Errorf("the page complains: %q", s)
	}
}

func TestBrowserFlows(t *testing.T) {
	c := underLoad(t)
	b := startBrowser(t)
	p := b.open(c.Control(), look{width: 1280, height: 900})
	p.shows("rs 0", "orders (10)")

	// A server is killed with the mouse: its room says so, its regions go.
	p.click(named("Kill rs 1"))
	p.shows("Kill rs 1: done")
	p.until("document.querySelector('[data-server=\"1\"]').classList.contains('dead')")
	p.until("document.querySelector('[data-server=\"1\"] .cells').children.length === 0")
	p.shot("flow-killed")
	p.click(named("Start rs 1"))
	p.until("document.querySelector('[data-server=\"1\"]').classList.contains('running')")

	// A region is moved there with the keyboard alone.
	where := func() string {
		t.Helper()
		r, err := c.Locate("orders", []byte("e"))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.Index)
	}
	if where() == "1" {
		t.Fatal("the region is on a server that was dead")
	}
	r, err := c.Locate("orders", []byte("e"))
	if err != nil {
		t.Fatal(err)
	}
	p.eval("document.querySelector('[data-id=\""+r.Encoded+"\"]').focus()", nil)
	p.until("!document.querySelector('.tip').hidden")
	p.shot("flow-focus")
	p.press("m")
	p.until("document.querySelector('dialog[open] select') === document.activeElement")
	p.eval("(() => { const s = document.activeElement; s.value = '1'; s.dispatchEvent(new Event('change')) })()", nil)
	p.shot("flow-move")
	p.press("Enter")
	p.shows("to rs 1: done")
	p.until("document.querySelector('[data-server=\"1\"] [data-id=\"" + r.Encoded + "\"]')")
	if where() != "1" {
		t.Errorf("the region is on rs %s", where())
	}
	p.until("document.activeElement.dataset.id === '" + r.Encoded + "'")

	// Arrows go from region to region, Enter chooses.
	p.press("Home", "ArrowRight", "ArrowLeft", "ArrowRight")
	p.until("document.activeElement.matches('.cell:focus-visible') && getComputedStyle(document.activeElement).outlineStyle === 'solid'")
	p.shot("flow-arrows")
	p.press("Enter")
	p.shows("open seqnum")

	// Another one is dragged.
	dragged, err := c.Locate("orders", []byte("q"))
	if err != nil {
		t.Fatal(err)
	}
	to := (dragged.Index + 1) % 3
	x, y := p.middle("document.querySelector('[data-id=\"" + dragged.Encoded + "\"]')")
	p.mouse("mousePressed", x, y)
	p.mouse("mouseMoved", x+20, y+3)
	var at []float64
	p.eval(fmt.Sprintf("(() => { const r = document.querySelector('[data-server=\"%d\"]').getBoundingClientRect(); return [r.left + r.width / 2, r.top + 12] })()", to), &at)
	p.mouse("mouseMoved", at[0], at[1])
	p.until("document.querySelector('.room.over') && document.querySelector('.ghost')")
	p.mouse("mouseReleased", at[0], at[1])
	p.until(fmt.Sprintf("document.querySelector('[data-server=\"%d\"] [data-id=\"%s\"]')", to, dragged.Encoded))

	// A move that takes its time is seen while it goes on.
	k, err := control.New(c.Control())
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	gap := control.Duration(3 * time.Second)
	if err := k.Master(t.Context(), control.MasterRequest{TransitionGap: &gap}); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() { moved <- c.MoveRegion(t.Context(), dragged.Encoded, dragged.Index) }()
	p.until("document.querySelector('.cell.moving')?.getAttribute('aria-label').includes('on its way to rs')")
	p.until("Number(document.querySelectorAll('.card b')[2].textContent) === 1")
	p.shot("flow-moving")
	if err := <-moved; err != nil {
		t.Error(err)
	}
	gap = 0
	if err := k.Master(t.Context(), control.MasterRequest{TransitionGap: &gap}); err != nil {
		t.Fatal(err)
	}
	p.until(fmt.Sprintf("document.querySelector('[data-server=\"%d\"] [data-id=\"%s\"].open')", dragged.Index, dragged.Encoded))

	// Split and merge, by keys.
	p.eval("document.querySelector('[data-id=\""+dragged.Encoded+"\"]').focus()", nil)
	p.press("s")
	p.until("document.querySelector('dialog[open] input') === document.activeElement")
	p.typeText("q")
	p.press("Enter")
	p.shows("Split orders [p, r): done")
	p.until("document.querySelector('.cell.parent')")

	// Rows, from a key on.
	p.press("4")
	p.click("[...document.querySelectorAll('main a')].find((a) => a.textContent === 'orders')")
	p.shows("Rows of orders", "Regions of orders")
	p.press("/")
	p.until("document.activeElement.matches('[data-first]')")
	p.typeText("h-")
	p.press("Enter")
	p.shows("h-0007", `\x00\x00\x07\xFF`)

	// A rule, and what comes of it.
	p.press("Tab")
	p.eval("document.activeElement.blur()", nil)
	p.press("5")
	p.shows("No rules")
	p.eval(`(() => { const set = (label, v) => { const l = [...document.querySelectorAll('label')].find((l) => l.textContent.startsWith(label)); l.querySelector('input').value = v }; set('Method', 'Mutate'); set('So many in all', '2') })()`, nil)
	p.click(named("Add the rule"))
	p.shows("Add a rule: done", "method=Mutate", "resting")
	p.shot("flow-rule")
	p.press("3")
	p.eval(`(() => { const s = document.querySelector('main select'); s.value = 'rpc'; s.dispatchEvent(new Event('change')) })()`, nil)
	p.eval(`document.querySelector('main input[type=checkbox]').click()`, nil)
	p.shows("NotServingRegionException")
	p.press("p")
	p.shows("Go on")

	// The master fails over.
	p.eval("document.activeElement.blur()", nil)
	p.press("5")
	p.shows("method=Mutate", "Sessions", "ephemerals")
	p.click(named("Kill master 0"))
	p.shows("Kill master 0: done")
	p.until("[...document.querySelectorAll('.badge')].some((b) => b.textContent === 'active' && b.parentElement.textContent.startsWith('master 1'))")
	p.press("1")

	// A refusal is told in words.
	p.press("?")
	p.shows("between regions")
	p.shot("flow-help")
	p.press("Escape")

	// A table of a million regions is counted, not listed.
	if err := c.GenerateTable(t.Context(), minihbase.GeneratedTable{Name: "huge", Regions: 1_000_000}); err != nil {
		t.Fatal(err)
	}
	p.until("[...document.querySelectorAll('.block')].some((b) => b.textContent.includes('of huge'))")
	var cells int
	p.eval("document.querySelectorAll('.cell').length", &cells)
	if cells > 100 {
		t.Errorf("%d cells", cells)
	}
	p.shot("flow-huge")
	if err := c.CreateTable(t.Context(), "many", []string{"f"}, manyKeys(999)...); err != nil {
		t.Fatal(err)
	}
	p.until("document.querySelectorAll('.cell').length > 1000")
	p.shot("flow-many")
	var took float64
	p.eval("new Promise((done) => { const t = performance.now(); requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - t))) })", &took)
	if took > 2000 {
		t.Errorf("a frame took %.0f ms", took)
	}

	// Reset asks first, and begins at Cancel.
	p.click(named("Reset…"))
	p.until("document.activeElement.textContent === 'Cancel'")
	p.shot("flow-reset")
	p.press("Enter")
	p.until("!document.querySelector('dialog')")
	if _, err := c.Regions("orders"); err != nil {
		t.Error("reset without being told to")
	}
	p.click(named("Reset…"))
	p.click(named("Drop everything and reset"))
	p.shows("Reset: done")
	p.until("![...document.querySelectorAll('.legend button')].some((b) => b.textContent.includes('orders'))")

	// Groups are rooms' rooms; a server that does not answer looks like one.
	if err := c.AddGroup(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	if err := c.MoveToGroup(t.Context(), "fast", c.RegionServers()[2:], nil); err != nil {
		t.Fatal(err)
	}
	p.click(named("Pause rs 1"))
	p.until("document.querySelector('[aria-label=\"Group fast\"] [data-server=\"2\"]')")
	p.until("document.querySelector('[data-server=\"1\"]').classList.contains('paused')")
	p.shot("flow-groups")
	p.click(named("Resume rs 1"))
	p.until("document.querySelector('[data-server=\"1\"]').classList.contains('running')")

	if s := b.complaints(); len(s) > 0 {
		t.Errorf("the page complains: %q", s)
	}
}

// The page outlives its cluster, and finds the next one at the same address.
func TestBrowserReconnects(t *testing.T) {
	first, err := minihbase.Start(t.Context(), minihbase.Options{Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	b := startBrowser(t)
	p := b.open(first.Control(), look{width: 1280, height: 900})
	p.shows("1 of 1 server up")
	u, err := url.Parse(first.Control())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	p.shows("no connection to the cluster")
	up(t, minihbase.Options{Servers: 2, ControlPort: port})
	p.shows("2 of 2 servers up", "rs 1")
}

func manyKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%05d", i)
	}
	return keys
}

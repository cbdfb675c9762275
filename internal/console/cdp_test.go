//go:build browser

package console_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a headless Chromium that is spoken to over two pipes in the
// DevTools protocol: messages of JSON, each ended by a zero byte. So the test
// needs Chromium and nothing else.
type browser struct {
	t   *testing.T
	in  *os.File
	ctx context.Context

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
	said    []string // errors of the page: exceptions, refused by policy, failed requests
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// chromium finds the browser: CHROMIUM, or what is called so.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium: install one, or name it in CHROMIUM")
	return ""
}

// startBrowser starts a browser of its own, with nothing remembered, and closes
// it with the test.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	toReader, toWriter, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromReader, fromWriter, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Chromium goes on writing its profile for a moment after its end.
	profile, err := os.MkdirTemp("", "console-browser-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	cmd := exec.Command(chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toReader, fromWriter} // 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	toReader.Close()
	fromWriter.Close()
	b := &browser{t: t, in: toWriter, ctx: ctx, waiting: map[int]chan reply{}}
	var wg sync.WaitGroup
	wg.Go(func() { b.read(fromReader) })
	t.Cleanup(func() {
		cancel()
		toWriter.Close()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		fromReader.Close()
		wg.Wait()
		for range 50 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return b
}

func (b *browser) read(from *os.File) {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			for _, c := range b.waiting {
				close(c)
			}
			b.waiting = nil
			b.mu.Unlock()
			return
		}
		var m struct {
			ID     int             `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
			reply
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if m.ID != 0 {
			if c := b.waiting[m.ID]; c != nil {
				c <- m.reply
				delete(b.waiting, m.ID)
			}
		} else if s := complaint(m.Method, m.Params); s != "" {
			b.said = append(b.said, s)
		}
		b.mu.Unlock()
	}
}

// complaint gives the text of an event that tells of an error in the page.
func complaint(method string, params json.RawMessage) string {
	var p struct {
		Entry struct{ Level, Text, URL string } `json:"entry"`
		Type  string                            `json:"type"`
		Args  []struct {
			Value any `json:"value"`
		} `json:"args"`
		ExceptionDetails struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	_ = json.Unmarshal(params, &p)
	switch method {
	case "Runtime.exceptionThrown":
		return p.ExceptionDetails.Text + " " + p.ExceptionDetails.Exception.Description
	case "Log.entryAdded":
		if p.Entry.Level == "error" {
			return p.Entry.Text + " " + p.Entry.URL
		}
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "assert" {
			return fmt.Sprint(p.Args)
		}
	}
	return ""
}

// call sends a command and waits for its answer.
func (b *browser) call(session, method string, params, out any) error {
	c := make(chan reply, 1)
	b.mu.Lock()
	if b.waiting == nil {
		b.mu.Unlock()
		return errors.New("the browser has ended")
	}
	b.last++
	id := b.last
	b.waiting[id] = c
	text, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": session})
	if session == "" {
		text, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case r, ok := <-c:
		switch {
		case !ok:
			return fmt.Errorf("%s: the browser has ended", method)
		case r.Error != nil:
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		case out == nil:
			return nil
		}
		return json.Unmarshal(r.Result, out)
	case <-b.ctx.Done():
		return fmt.Errorf("%s: %w", method, b.ctx.Err())
	}
}

// page is one tab.
type page struct {
	*browser
	session string
}

// look is how a page is looked at.
type look struct {
	width, height int
	dark          bool
	still         bool // prefers-reduced-motion
}

func (b *browser) open(url string, l look) *page {
	b.t.Helper()
	var target struct{ TargetID, SessionID string }
	b.must(b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	b.must(b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target))
	p := &page{browser: b, session: target.SessionID}
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		p.do(domain+".enable", map[string]any{}, nil)
	}
	p.look(l)
	p.do("Page.navigate", map[string]any{"url": url}, nil)
	return p
}

func (b *browser) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (p *page) do(method string, params, out any) {
	p.t.Helper()
	p.must(p.call(p.session, method, params, out))
}

func (p *page) look(l look) {
	p.t.Helper()
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": l.width, "height": l.height, "deviceScaleFactor": 1, "mobile": false}, nil)
	scheme, motion := "light", "no-preference"
	if l.dark {
		scheme = "dark"
	}
	if l.still {
		motion = "reduce"
	}
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": motion},
	}}, nil)
}

// eval runs a script; a promise is waited for. The value comes back as JSON.
func (p *page) eval(script string, out any) {
	p.t.Helper()
	if err := p.try(script, out); err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
}

func (p *page) try(script string, out any) error {
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		ExceptionDetails *struct {
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := p.call(p.session, "Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true, "userGesture": true}, &r); err != nil {
		return err
	}
	if r.ExceptionDetails != nil {
		return errors.New(r.ExceptionDetails.Exception.Description)
	}
	if out == nil || len(r.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(r.Result.Value, out)
}

// until waits for a script to be true.
func (p *page) until(script string) {
	p.t.Helper()
	var ok bool
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		if p.try("!!("+script+")", &ok) == nil && ok {
			return
		}
	}
	var text string
	_ = p.try("document.body.innerText", &text)
	p.shot("failed-" + strings.ReplaceAll(p.t.Name(), "/", "-"))
	p.t.Fatalf("waited in vain for %s\nthe page says:\n%s", script, text)
}

// shows waits until the page's text holds all of these.
func (p *page) shows(words ...string) {
	p.t.Helper()
	for _, w := range words {
		q, _ := json.Marshal(w)
		p.until("document.body.innerText.includes(" + string(q) + ")")
	}
}

// keyCodes are the Windows key codes Chromium wants for keys without a text.
var keyCodes = map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}

// press presses keys, as a person would.
func (p *page) press(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		down := map[string]any{"type": "keyDown", "key": k, "windowsVirtualKeyCode": keyCodes[k]}
		switch {
		case k == "Enter":
			down["text"] = "\r"
		case keyCodes[k] == 0:
			down["text"] = k
		}
		p.do("Input.dispatchKeyEvent", down, nil)
		p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": k, "windowsVirtualKeyCode": keyCodes[k]}, nil)
	}
}

func (p *page) typeText(text string) {
	p.t.Helper()
	p.do("Input.insertText", map[string]any{"text": text}, nil)
}

// middle finds an element on the screen.
func (p *page) middle(script string) (x, y float64) {
	p.t.Helper()
	var at []float64
	p.until(script)
	p.eval("(() => { const e = "+script+"; e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2] })()", &at)
	return at[0], at[1]
}

func (p *page) mouse(kind string, x, y float64) {
	p.t.Helper()
	buttons := 1
	if kind == "mouseReleased" {
		buttons = 0
	}
	p.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1}, nil)
}

// click clicks on an element with the mouse.
func (p *page) click(script string) {
	p.t.Helper()
	x, y := p.middle(script)
	p.mouse("mousePressed", x, y)
	p.mouse("mouseReleased", x, y)
}

// named finds a button by what it is called.
func named(name string) string {
	q, _ := json.Marshal(name)
	return "[...document.querySelectorAll('button')].find((b) => (b.getAttribute('aria-label') ?? b.textContent) === " + string(q) + " && b.offsetParent)"
}

// shot takes a picture if a folder for pictures was named.
func (p *page) shot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	var out struct{ Data string }
	p.do("Page.captureScreenshot", map[string]any{"format": "png"}, &out)
	data, err := base64.StdEncoding.DecodeString(out.Data)
	p.must(err)
	p.must(os.MkdirAll(*shots, 0o755))
	p.must(os.WriteFile(filepath.Join(*shots, name+".png"), data, 0o644))
}

// complaints are what the pages have complained about since last asked.
func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.said
	b.said = nil
	return s
}

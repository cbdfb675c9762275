package console

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/cluster"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

//go:embed web
var web embed.FS

// policy allows the page what it needs: its own scripts, styles and requests.
// Scripts cannot make HTML of text either.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Console serves the page and what it asks for. Make one with New. Safe for
// concurrent use.
type Console struct {
	c     *cluster.Cluster
	mux   *http.ServeMux
	paths []string
	rates *sampler

	mu     sync.Mutex // guards what follows
	state  *catalog.State
	number uint64 // of the picture in state
	drawn  map[int]*Picture
}

// New makes the console of a cluster.
func New(c *cluster.Cluster) *Console {
	k := &Console{c: c, mux: http.NewServeMux(), rates: newSampler(c.Events()), drawn: map[int]*Picture{}}
	k.mux.HandleFunc("GET /{$}", k.asset("index.html"))
	entries, err := fs.ReadDir(web, "web")
	if err == nil {
		for _, e := range entries {
			k.mux.HandleFunc("GET /console/"+e.Name(), k.asset(e.Name()))
			k.paths = append(k.paths, "/console/"+e.Name())
		}
	}
	k.get("/console/map", k.getMap)
	k.get("/console/rates", k.getRates)
	k.get("/console/events", k.getEvents)
	k.get("/console/regions", k.getRegions)
	k.get("/console/rows", k.getRows)
	return k
}

// Close ends the sampler.
func (k *Console) Close() { k.rates.close() }

// Paths are what is served besides "/", all below /console/.
func (k *Console) Paths() []string { return k.paths }

// ServeHTTP answers GET of "/" and of Paths.
func (k *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.rates.start()
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	k.mux.ServeHTTP(w, r)
}

// asset serves one file of the folder web.
func (k *Console) asset(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := web.ReadFile(path.Join("web", name))
		if err != nil {
			refuse(w, http.StatusNotFound, err)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		// Another binary may serve the same address a minute later.
		h.Set("Cache-Control", "no-store")
		if ct := types[path.Ext(name)]; ct != "" {
			// The system's table of types is not to be relied on.
			h.Set("Content-Type", ct)
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	}
}

var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// get adds a request that is answered in JSON.
func (k *Console) get(path string, f func(r *http.Request) (any, error)) {
	k.paths = append(k.paths, path)
	k.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		out, err := f(r)
		var bad *badRequest
		switch {
		case errors.As(err, &bad):
			refuse(w, http.StatusBadRequest, err)
		case err != nil:
			refuse(w, http.StatusConflict, err)
		default:
			answer(w, http.StatusOK, out)
		}
	})
}

// badRequest is an error that is the caller's.
type badRequest struct{ text string }

func (b *badRequest) Error() string { return b.text }

func bad(format string, args ...any) error { return &badRequest{fmt.Sprintf(format, args...)} }

func refuse(w http.ResponseWriter, code int, err error) {
	answer(w, code, &control.Error{Message: err.Error()})
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a page that has gone away is no concern of ours
}

// number reads a parameter between 0 and most; absent, it is def.
func number(r *http.Request, name string, def, most uint64) (uint64, error) {
	text := r.FormValue(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return 0, bad("%s %q is not a number from 0 to %d", name, text, most)
	}
	return n, nil
}

// key reads a parameter in HBase's notation.
func key(r *http.Request, name string) []byte {
	var b control.Bytes
	_ = b.UnmarshalText([]byte(r.FormValue(name))) // never fails
	return b
}

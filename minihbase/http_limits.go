package minihbase

import (
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// What callers of the control port can make it hold.
const (
	// maxControlConns bounds its connections; more are closed at once.
	maxControlConns = 1024
	// maxHeader bounds a request's header.
	maxHeader = 64 << 10
	// smallBody is up to where bodies are read without waiting for a place; of larger ones, up to maxBody, so many are read at one time.
	smallBody, maxLargeBodies = 64 << 10, 16
	// bodyTime is how long a body may take to arrive, writeTime how long a caller may take to read a piece of its answer.
	bodyTime, writeTime = 30 * time.Second, time.Minute
	// idleTime is how long a connection may wait for its next request.
	idleTime = 2 * time.Minute
)

// fewConns is a listener that closes connections beyond a number.
type fewConns struct {
	net.Listener
	open atomic.Int64
}

func (l *fewConns) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= maxControlConns {
			return &countedConn{Conn: nc, open: &l.open}, nil
		}
		l.open.Add(-1)
		_ = nc.Close()
	}
}

type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// limited bounds bodies in size, number and time, and the time of each write.
func limited(h http.Handler) http.Handler {
	places := make(chan struct{}, maxLargeBodies)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		body := &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, maxBody), rc: rc}
		if r.ContentLength > smallBody || r.ContentLength < 0 {
			select {
			case places <- struct{}{}:
				body.leave = sync.OnceFunc(func() { <-places })
				defer body.leave()
			case <-r.Context().Done():
				return
			}
		}
		r.Body = body
		h.ServeHTTP(&timedWriter{ResponseWriter: w, rc: rc}, r)
	})
}

// timedBody is read within bodyTime of the first look at it, and gives its place away at its end.
type timedBody struct {
	io.ReadCloser
	rc    *http.ResponseController
	begun bool
	leave func()
}

func (b *timedBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		if err := b.rc.SetReadDeadline(time.Now().Add(bodyTime)); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		// The request may go on for long, and its caller be silent.
		_ = b.rc.SetReadDeadline(time.Time{})
		if b.leave != nil {
			b.leave()
		}
	}
	return n, err
}

// timedWriter gives each write its time.
type timedWriter struct {
	http.ResponseWriter
	rc *http.ResponseController
}

func (w *timedWriter) Write(p []byte) (int, error) {
	if err := w.rc.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets a ResponseController find what is below.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

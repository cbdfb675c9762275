package store

import (
	"path"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logGuard is the file system as the engine sees it. It keeps failures of the
// log from the engine, which panics with its locks held when it hears of one
// (a full disk, say): every later write, and Close, would hang.
//
// With the first failure the store is broken (Store.failure): whoever has not
// been answered gets the failure, and no write is begun any more. That is
// noted before the engine goes on, and writes look at it after the engine has
// said that they are on disk, so none is acknowledged that is not. What is
// written to a log afterwards goes nowhere, so that the last log in the
// directory ends where the disk was full, as after a crash.
type logGuard struct {
	vfs.FS
	s *Store
	// open is set when the engine is: before that it deals with errors well.
	open atomic.Bool
}

func isLog(name string) bool { return path.Ext(name) == ".log" }

// Create makes a file.
func (g *logGuard) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !isLog(name) {
		return g.FS.Create(name, category)
	}
	if g.s.fatal.Load() != nil {
		return nowhere(category)
	}
	return g.guard(category)(g.FS.Create(name, category))
}

// ReuseForWrite makes a file out of an old one.
func (g *logGuard) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !isLog(to) {
		return g.FS.ReuseForWrite(from, to, category)
	}
	if g.s.fatal.Load() != nil {
		return nowhere(category)
	}
	return g.guard(category)(g.FS.ReuseForWrite(from, to, category))
}

// Unwrap gives the file system beneath.
func (g *logGuard) Unwrap() vfs.FS { return g.FS }

func (g *logGuard) guard(category vfs.DiskWriteCategory) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err == nil {
			return &logFile{File: f, g: g}, nil
		}
		if !g.open.Load() {
			return nil, err
		}
		g.failed(err)
		return nowhere(category)
	}
}

func (g *logGuard) failed(err error) { g.s.fatal.CompareAndSwap(nil, &err) }

// nowhere is a file that nobody will read.
func nowhere(category vfs.DiskWriteCategory) (vfs.File, error) {
	return vfs.NewMem().Create("log", category)
}

// logFile is a log. Its writes and syncs always succeed.
type logFile struct {
	vfs.File
	g *logGuard
}

func (f *logFile) lost() bool { return f.g.s.fatal.Load() != nil }

func (f *logFile) Write(b []byte) (int, error) {
	if !f.lost() {
		if _, err := f.File.Write(b); err != nil {
			f.g.failed(err)
		}
	}
	return len(b), nil
}

func (f *logFile) Sync() error { return f.sync(f.File.Sync) }

func (f *logFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *logFile) SyncTo(length int64) (full bool, err error) {
	err = f.sync(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full || f.lost(), err
}

func (f *logFile) sync(do func() error) error {
	if !f.lost() {
		if err := do(); err != nil {
			f.g.failed(err)
		}
	}
	return nil
}

func (f *logFile) Close() error {
	if err := f.File.Close(); err != nil {
		f.g.failed(err)
	}
	return nil
}

package main_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"dts"
)

// fill takes all room on the disk, and whatever becomes free, until the function that it returns is called.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	stop, done, full := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		page, first := make([]byte, os.Getpagesize()), true
		for {
			if _, err := f.Write(page); err == nil {
				continue
			}
			if first {
				close(full)
				first = false
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	<-full
	emptied := false
	empty = func() {
		if !emptied {
			emptied = true
			close(stop)
			<-done
			f.Close()
			os.Remove(path)
		}
	}
	t.Cleanup(empty)
	return empty
}

// fillDisk fills the disk. After a while there is room again, or first the server is killed and another one is
// started on the full disk: that one may refuse to start.
func (c *crash) fillDisk(r round) (what string) {
	s := c.server
	c.load.mayFail.Store(true)
	empty := fill(c.t, filepath.Dir(s.data))
	s.eventually(10*time.Second, "writes to be refused", func() bool {
		_, err := c.load.trySend(c.load.plain())
		return dts.CodeOf(err) == dts.ErrFull
	})
	time.Sleep(r.alive / 2)
	if !r.mercy {
		c.kill()
		c.launch("")
		if !s.readyOrDead(20 * time.Second) {
			what = ", the next one refused to start on the full disk"
			if s.state.ExitCode() < 1 {
				c.violated(clean, "started on a full disk, the server ended with %s", s.state)
			}
			c.bury()
			empty()
			return what
		}
		what = ", the next one started on the full disk,"
		time.Sleep(r.alive / 2)
	}
	empty()
	if !c.awaitWrite() {
		c.violated(clean, "the server ended by itself: %s", s.state)
	}
	time.Sleep(200 * time.Millisecond)
	c.kill()
	return what + ", went on when there was room"
}

package main

import (
	"bytes"
	"io"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	consoleRoom = 256 << 10   // bytes that may wait to be printed before those who print wait
	longestLine = 64 << 10    // a longer one is printed in parts
	partAfter   = time.Second // a line whose end does not come is printed as far as it is there
)

// console prints the output of many runs, each line whole and behind the name of its task. What comes while a write
// is under way is printed with the next one, so that many short lines cost few writes.
type console struct {
	w      io.Writer
	colour bool // end what a line has coloured with the line

	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte // whole lines
	busy    bool   // they are being written
	printed bool   // there have been some
	closed  bool
	err     error
	failed  chan struct{} // closed when a write has failed: the rest is dropped
	ended   chan struct{}
}

// newConsole starts a console. Close it.
func newConsole(w io.Writer, colour bool) *console {
	c := &console{w: w, colour: colour, failed: make(chan struct{}), ended: make(chan struct{})}
	c.changed = sync.NewCond(&c.mu)
	go c.run()
	return c
}

func (c *console) run() {
	defer close(c.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	var spare []byte
	for {
		for len(c.waiting) == 0 && !c.closed {
			c.changed.Wait()
		}
		if len(c.waiting) == 0 {
			return
		}
		p := c.waiting
		c.waiting, c.busy, c.printed = spare[:0], true, true
		c.mu.Unlock()
		_, err := c.w.Write(p)
		c.mu.Lock()
		if spare, c.busy = p, false; cap(spare) > 4*consoleRoom {
			spare = nil
		}
		if err != nil && c.err == nil {
			c.err = err
			close(c.failed)
		}
		c.changed.Broadcast()
	}
}

// print queues whole lines. It waits while too much is queued, but not for the output of a run whose process has
// exited: that is little, and would be lost. nil: of no run.
func (c *console) print(p []byte, of *lines) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) >= consoleRoom && c.err == nil && (of == nil || !of.exited) {
		c.changed.Wait()
	}
	if c.err == nil {
		c.waiting = append(c.waiting, p...)
		c.changed.Broadcast()
	}
}

// flush returns when everything is printed, with the error of the first write that failed.
func (c *console) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (len(c.waiting) > 0 || c.busy) && c.err == nil {
		c.changed.Wait()
	}
	return c.err
}

// used reports whether anything was printed.
func (c *console) used() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.printed
}

// Close prints what is left.
func (c *console) Close() error {
	c.mu.Lock()
	c.closed = true
	c.changed.Broadcast()
	c.mu.Unlock()
	<-c.ended
	return c.err
}

// label is what stands before the lines of a task, and before what is left of a line that was printed in part.
type label struct{ line, rest string }

// lines prints what one run writes, line by line. A carriage return ends a line, too: a progress bar becomes several.
type lines struct {
	c      *console
	label  label
	exited bool // see console.print; under the console's lock

	mu    sync.Mutex
	part  []byte // the beginning of a line
	rest  bool   // of which something is printed already
	cr    bool   // the last byte was a carriage return that has ended a line
	timer *time.Timer
}

func (c *console) lines(l label) *lines { return &lines{c: c, label: l} }

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	var out []byte
	for len(p) > 0 {
		if l.cr && p[0] == '\n' { // of \r\n
			l.cr, p = false, p[1:]
			continue
		}
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			i = len(p)
		}
		if j := bytes.IndexByte(p[:i], '\r'); j >= 0 {
			i = j
		}
		l.part = append(l.part, p[:i]...)
		if i == len(p) {
			l.cr = false
			break
		}
		// A carriage return that ends nothing, as where a bar begins, is no line.
		if l.cr = p[i] == '\r' && len(l.part) > 0; l.cr || p[i] == '\n' {
			out = l.end(out)
		}
		p = p[i+1:]
	}
	for len(l.part) > longestLine {
		out = l.cut(out)
	}
	if len(l.part) > 0 && l.timer == nil {
		l.timer = time.AfterFunc(partAfter, l.late)
	}
	if len(out) > 0 {
		l.c.print(out, l)
	}
	return n, nil
}

// end adds the line that is complete to out.
func (l *lines) end(out []byte) []byte {
	for len(l.part) > longestLine {
		out = l.cut(out)
	}
	if !l.rest || len(l.part) > 0 {
		out = l.add(out, l.part)
	}
	l.part, l.rest = l.part[:0], false
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	return out
}

// cut adds a part of a line to out, as much as a line may have.
func (l *lines) cut(out []byte) []byte {
	n := wholeRunes(l.part[:min(len(l.part), longestLine)])
	out = l.add(out, l.part[:n])
	l.part = append(l.part[:0], l.part[n:]...)
	l.rest = true
	return out
}

func (l *lines) add(out, text []byte) []byte {
	if l.rest {
		out = append(out, l.label.rest...)
	} else {
		out = append(out, l.label.line...)
	}
	out = append(out, text...)
	if l.c.colour && bytes.IndexByte(text, '\x1b') >= 0 {
		out = append(out, "\x1b[0m"...)
	}
	return append(out, '\n')
}

// late prints what there is of a line.
func (l *lines) late() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer = nil; len(l.part) > 0 {
		l.c.print(l.cut(nil), l)
	}
}

// exit says that the process has exited: what it wrote before that is still to come, and is not held up.
func (l *lines) exit() {
	l.c.mu.Lock()
	l.exited = true
	l.c.changed.Broadcast()
	l.c.mu.Unlock()
}

// Close prints a last line that has no end.
func (l *lines) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.c.print(l.end(nil), l)
	}
}

// wholeRunes is how many of the bytes there are without a character at the end of which only the beginning is there.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= max(len(b)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if i > 0 && !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

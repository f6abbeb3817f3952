package exec

import (
	"context"
	"io"
	"sync"

	"dts"
)

// capture collects the output of one attempt: the first dts.OutputKept bytes and the last dts.OutputKept of
// what follows. It implements io.Writer for the attempt and dts.Tail for those who watch; any number of
// goroutines may use it at once. The zero value is ready.
type capture struct {
	tee io.Writer // gets everything first; nil: nobody wants it

	mu    sync.Mutex
	head  []byte
	ring  []byte        // byte number o of the stream, after the head, is at (o - OutputKept) % OutputKept
	total int64         // bytes written in all
	done  bool          // nothing more will come
	wake  chan struct{} // closed at the next change; nil when nobody waits
}

// Write keeps what fits and never fails. Writes are in order: there is one writer.
func (c *capture) Write(p []byte) (int, error) {
	if c.tee != nil {
		_, _ = c.tee.Write(p) // see dts.Job
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	if room := dts.OutputKept - len(c.head); room > 0 {
		c.head = append(c.head, p[:min(room, n)]...)
		p = p[min(room, n):]
	}
	if skip := len(p) - dts.OutputKept; skip > 0 && len(c.ring) == dts.OutputKept {
		p = p[skip:] // would be overwritten at once
	}
	at := c.total + int64(n-len(p)) - dts.OutputKept
	for len(p) > 0 {
		if len(c.ring) < dts.OutputKept {
			k := min(dts.OutputKept-len(c.ring), len(p))
			c.ring = append(c.ring, p[:k]...)
			p, at = p[k:], at+int64(k)
			continue
		}
		k := copy(c.ring[at%dts.OutputKept:], p)
		p, at = p[k:], at+int64(k)
	}
	c.total += int64(n)
	c.notify()
	return n, nil
}

// finish says that nothing more will come.
func (c *capture) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	c.notify()
}

func (c *capture) notify() {
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

// output returns what was kept. It shares memory with the capture: call it after finish.
func (c *capture) output() dts.Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	return dts.Output{Head: c.head, Tail: c.tailFrom(dts.OutputKept), Total: c.total}
}

// tailFrom returns a copy of the kept bytes of the ring that are not before byte number from.
func (c *capture) tailFrom(from int64) []byte {
	from = max(from, c.total-int64(len(c.ring)))
	if len(c.ring) == 0 || from >= c.total {
		return nil
	}
	b := make([]byte, 0, c.total-from)
	start, end := (from-dts.OutputKept)%dts.OutputKept, (c.total-dts.OutputKept)%dts.OutputKept
	if start < end {
		return append(b, c.ring[start:end]...)
	}
	if end == 0 {
		end = int64(len(c.ring))
		return append(b, c.ring[start:end]...)
	}
	return append(append(b, c.ring[start:]...), c.ring[:end]...)
}

// Read implements dts.Tail. A chunk is at most dts.OutputKept bytes. done comes with the last chunk.
func (c *capture) Read(ctx context.Context, offset int64) (chunk []byte, next int64, done bool, err error) {
	offset = max(offset, 0)
	for {
		c.mu.Lock()
		if offset < c.total || c.done {
			if offset < int64(len(c.head)) {
				chunk = append(chunk, c.head[offset:]...)
				next = int64(len(c.head))
			} else {
				chunk = c.tailFrom(offset)
				next = max(offset, c.total)
			}
			done = c.done && next >= c.total
			c.mu.Unlock()
			return chunk, next, done, nil
		}
		if c.wake == nil {
			c.wake = make(chan struct{})
		}
		wake := c.wake
		c.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, offset, false, ctx.Err()
		}
	}
}

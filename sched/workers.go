package sched

import "sync"

// idleWorkers is how many goroutines are kept for the next runs.
const idleWorkers = 128

// workers runs functions on goroutines that are used again: a stack that has grown to what an HTTP call needs is
// not grown anew for each one. The zero value is ready.
type workers struct {
	mu   sync.Mutex
	idle []chan func() // the one that ended last is used first
	over bool
}

// run calls f on a goroutine of its own.
func (w *workers) run(f func()) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		c := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		c <- f
		return
	}
	w.mu.Unlock()
	go w.work(f)
}

func (w *workers) work(f func()) {
	next := make(chan func(), 1)
	for f != nil {
		f()
		w.mu.Lock()
		if w.over || len(w.idle) >= idleWorkers {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, next)
		w.mu.Unlock()
		f = <-next
	}
}

// stop ends the goroutines that are idle, and the others when they become so.
func (w *workers) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, c := range w.idle {
		c <- nil
	}
	w.idle = nil
}

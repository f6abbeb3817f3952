package sched

import "sync"

// inbox carries work to the loop's goroutine. Posting never blocks.
type inbox struct {
	mu   sync.Mutex
	list []func(*loop)
	wake chan struct{} // capacity 1: something is in list
}

func (b *inbox) post(f func(*loop)) {
	b.mu.Lock()
	b.list = append(b.list, f)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take swaps what has been posted for an empty list.
func (b *inbox) take(empty []func(*loop)) []func(*loop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.list
	b.list = empty[:0]
	return full
}

package peers

import (
	"context"
	"errors"
	"sync"
	"time"

	"dts"
	"dts/web/api"
)

// tails are the outputs that other servers read. Each is kept for a while between two reads: at the end of a run its
// runner lets go of it, but who reads must still get the last part.
type tails struct {
	outputs api.Outputs

	mu   sync.Mutex
	held map[tailKey]*heldTail
}

type tailKey struct {
	id     string
	number int
}

type heldTail struct {
	dts.Tail
	forget *time.Timer
}

const (
	tailKept = 30 * time.Second // after the last read
	maxTails = 256              // kept at once: each may be all that is left of 128 KB
)

func newTails(o api.Outputs) *tails { return &tails{outputs: o, held: map[tailKey]*heldTail{}} }

func (k *tails) find(id string, number int) (dts.Tail, bool) {
	key := tailKey{id, number}
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.held[key]; h != nil {
		h.forget.Reset(tailKept)
		return h, true
	}
	t, ok := k.outputs.Tail(id, number)
	if ok && len(k.held) < maxTails {
		k.held[key] = &heldTail{t, time.AfterFunc(tailKept, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.held, key)
		})}
	}
	return t, ok
}

func (h *Handler) findOutput(_ context.Context, q *request, _ []*dts.Task) (*answer, error) {
	_, found := h.tails.find(q.ID, q.Number)
	return &answer{Found: found}, nil
}

// readOutput answers as soon as there is output after the offset, or at the end of the run, or when the caller does
// not want to wait any longer.
func (h *Handler) readOutput(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	t, found := h.tails.find(q.ID, q.Number)
	if !found {
		return &answer{}, nil
	}
	end, err := h.stream()
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, min(max(q.Wait, 0), pollTime))
	defer cancel()
	chunk, next, done, err := t.Read(ctx, q.Offset)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	return &answer{Found: true, Chunk: chunk, Next: max(next, q.Offset), Done: done}, nil
}

// stream takes a place among the streams. The function that it returns gives it back.
func (h *Handler) stream() (end func(), err error) {
	select {
	case h.streams <- struct{}{}:
		return func() { <-h.streams }, nil
	default:
		return nil, dts.Errorf(dts.ErrUnavailable, "all %d streams between servers are in use", cap(h.streams))
	}
}

// remoteTail reads the output of a run on another server.
type remoteTail struct {
	r      *Router
	node   dts.Node
	id     string
	number int
}

// Tail returns a reader of the output of an attempt that runs on any server, and false where none says that it does.
func (r *Router) Tail(taskID string, number int) (dts.Tail, bool) {
	if t, ok := r.o.Outputs.Tail(taskID, number); ok {
		return t, true
	}
	p := r.o.Local.Placement()
	if len(p.Nodes) < 2 {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), shortTime)
	defer cancel()
	ctx, _ = dts.AllowStale(ctx) // the other server is asked whether it is so
	list, err := r.o.Store.TasksByID(ctx, []string{taskID})
	if err != nil || len(list) == 0 {
		return nil, false
	}
	t := list[0]
	switch { // a run that has just begun may not show yet: its task is claimed
	case t.Status == dts.Running && t.Attempts == number:
	case t.Status == dts.Pending && t.Attempts+1 == number && !t.PickedAt.IsZero():
	default:
		return nil, false
	}
	n, lives := p.Node(t.Node)
	if !lives || n.ID == p.Self {
		return nil, false
	}
	a, err := r.o.Client.call(ctx, n, "FindOutput", &request{ID: taskID, Number: number})
	if err != nil || !a.Found {
		return nil, false
	}
	return &remoteTail{r, n, taskID, number}, true
}

// Read implements dts.Tail. While the other server does not answer it tries again; when that one counts as dead, or
// no longer knows the run, the run has ended, and what it left is in the store.
func (t *remoteTail) Read(ctx context.Context, offset int64) (chunk []byte, next int64, done bool, err error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		a, err := t.ask(ctx, offset)
		switch {
		case err == nil && !a.Found:
			return nil, offset, true, nil
		case err == nil && (len(a.Chunk) > 0 || a.Next > offset || a.Done):
			return a.Chunk, a.Next, a.Done, nil
		case ctx.Err() != nil:
			return nil, offset, false, ctx.Err()
		case err == nil:
			pause = firstPause / 2
			continue
		case !t.r.same(t.node):
			return nil, offset, true, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, offset, false, err
		}
	}
}

// ask waits at the other server, a little shorter than the caller would.
func (t *remoteTail) ask(ctx context.Context, offset int64) (*answer, error) {
	wait := pollTime
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = min(wait, left-min(left/5, 50*time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, wait+shortTime)
	defer cancel()
	a, err := t.r.o.Client.call(ctx, t.node, "ReadOutput", &request{ID: t.id, Number: t.number, Offset: offset, Wait: wait})
	if err == nil && int64(len(a.Chunk)) > a.Next {
		return nil, errors.New("the other server's answer makes no sense")
	}
	return a, err
}

package peers

import (
	"context"
	"errors"
	"sync"
	"time"

	"dts"
)

const (
	subscriberBuffer = 1024                   // events that may wait for a subscriber
	openTime         = 250 * time.Millisecond // how long a first subscription waits for the streams from other servers
	lookTime         = time.Second            // between two looks at who lives
	maxReopen        = 5 * time.Second        // between two tries to open a stream
)

// hub spreads one tenant's events, from this server and from all others, to those who listen here.
type hub struct {
	r      *Router
	tenant string
	cancel context.CancelFunc
	opened chan struct{} // closed when each server that lived at the beginning sends events, or has failed to

	mu   sync.Mutex
	subs map[chan dts.Event]bool
}

// Subscribe delivers the tenant's events from now on, wherever they happen. The channel is closed when the subscriber,
// or a stream from another server, was too slow: then events may have been missed. When another server cannot be
// reached, its events are missing until it can; they are not made up for.
func (r *Router) Subscribe(tenant string) (<-chan dts.Event, func()) {
	ch := make(chan dts.Event, subscriberBuffer)
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		close(ch)
		return ch, func() {}
	}
	h := r.hubs[tenant]
	if h == nil {
		h = r.newHub(tenant)
	}
	h.mu.Lock()
	h.subs[ch] = true
	h.mu.Unlock()
	r.mu.Unlock()

	// Who subscribes looks at the store next, and relies on being told of what comes after.
	wait := time.NewTimer(openTime)
	defer wait.Stop()
	select {
	case <-h.opened:
	case <-wait.C:
	}
	return ch, func() { h.leave(ch) }
}

// Close ends all subscriptions and waits for the streams to end.
func (r *Router) Close() {
	r.mu.Lock()
	r.closed = true
	hubs := r.hubs
	r.hubs = map[string]*hub{}
	r.mu.Unlock()
	for _, h := range hubs {
		h.end()
	}
	r.running.Wait()
}

// newHub starts a hub. The Router is locked.
func (r *Router) newHub(tenant string) *hub {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hub{r: r, tenant: tenant, cancel: cancel, opened: make(chan struct{}), subs: map[chan dts.Event]bool{}}
	r.hubs[tenant] = h
	events, unsubscribe := r.o.Local.Subscribe(tenant)
	r.running.Go(func() {
		defer unsubscribe()
		h.run(ctx, events)
	})
	return h
}

// leave ends one subscription, and the hub with the last one.
func (h *hub) leave(ch chan dts.Event) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(ch)
	if len(h.subs) == 0 {
		h.retire()
	}
}

// drop closes a subscriber's channel. The hub is locked.
func (h *hub) drop(ch chan dts.Event) {
	if h.subs[ch] {
		delete(h.subs, ch)
		close(ch)
	}
}

// retire stops the streams; a later subscription starts another hub. The Router is locked.
func (h *hub) retire() {
	if h.r.hubs[h.tenant] == h {
		delete(h.r.hubs, h.tenant)
	}
	h.cancel()
}

// end closes all subscriptions.
func (h *hub) end() {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.subs {
		h.drop(ch)
	}
	h.retire()
}

func (h *hub) publish(e dts.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.subs {
		select {
		case ch <- e:
		default:
			h.drop(ch)
		}
	}
}

// run passes events on until the hub is retired. It keeps a stream open from each other server that lives.
func (h *hub) run(ctx context.Context, events <-chan dts.Event) {
	var streams sync.WaitGroup
	defer streams.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	open := map[string]stream{}
	first := h.look(ctx, open, &streams)
	streams.Go(func() {
		defer close(h.opened)
		for _, tried := range first {
			<-tried
		}
	})
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.look(ctx, open, &streams)
		case e, ok := <-events:
			if !ok { // too slow, or this server's scheduler has ended
				h.end()
				return
			}
			h.publish(e)
		}
	}
}

// stream is one that is kept open from another server.
type stream struct {
	node dts.Node
	stop context.CancelFunc
}

// look ends the streams from servers that have gone, and opens those from servers that have come. Of each of these
// there is a channel in the answer; it is closed when the stream is open for the first time, or has failed to be.
func (h *hub) look(ctx context.Context, open map[string]stream, running *sync.WaitGroup) (opening []chan struct{}) {
	p := h.r.o.Local.Placement()
	for id, s := range open {
		if now, lives := p.Node(id); !lives || now.Incarnation != s.node.Incarnation || now.Address != s.node.Address {
			s.stop()
			delete(open, id)
		}
	}
	for _, n := range p.Nodes {
		if _, has := open[n.ID]; has || n.ID == p.Self {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		open[n.ID] = stream{n, stop}
		tried := make(chan struct{})
		opening = append(opening, tried)
		running.Go(func() { h.follow(ctx, n, sync.OnceFunc(func() { close(tried) })) })
	}
	return opening
}

// follow passes a server's events on, and opens the stream again when it breaks. It calls tried once it is open for
// the first time, or has failed to.
func (h *hub) follow(ctx context.Context, n dts.Node, tried func()) {
	pause := firstPause
	for {
		err := h.r.o.Client.events(ctx, n, h.tenant, func() { tried(); pause = firstPause }, h.publish)
		tried()
		if ctx.Err() != nil {
			return
		}
		h.r.o.Log.Debug("events of another server are missing", "server", n.ID, "tenant", h.tenant, "error", err)
		if errors.Is(err, errOverflow) {
			h.end()
			return
		}
		if sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, maxReopen)
	}
}

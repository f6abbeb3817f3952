package peers

import (
	"context"

	"dts"
)

// notice is what waits to be told to one server.
type notice struct {
	node dts.Node
	poke bool
	ids  []string
}

// Poke tells a server, in the background, to look at the members of the cluster: someone has come, gone or released
// shards. One that cannot be told finds out by itself, later.
func (c *Client) Poke(n dts.Node) { c.tell(n, true, nil) }

// Wake tells a server, in the background, of tasks that were made ready in shards that it holds. What is told while a
// call is on its way waits and goes with the next one. One that cannot be told finds out by itself, later.
func (c *Client) Wake(n dts.Node, ids []string) {
	if len(ids) > 0 {
		c.tell(n, false, ids)
	}
}

func (c *Client) tell(n dts.Node, poke bool, ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	w := c.notices[n.ID]
	if w == nil {
		w = &notice{}
		c.notices[n.ID] = w
		c.running.Go(func() { c.deliver(n.ID) })
	}
	w.node, w.poke = n, w.poke || poke
	w.ids = append(w.ids, ids[:min(len(ids), maxNotices-len(w.ids))]...)
}

// deliver tells one server what waits for it, until nothing does.
func (c *Client) deliver(id string) {
	for {
		c.mu.Lock()
		w := c.notices[id]
		if c.closed || !w.poke && len(w.ids) == 0 {
			delete(c.notices, id)
			c.mu.Unlock()
			return
		}
		c.notices[id] = &notice{}
		c.mu.Unlock()

		ctx, cancel := context.WithTimeout(c.ctx, noticeTime)
		_, err := c.call(ctx, w.node, "Notice", &request{Poke: w.poke, IDs: w.ids})
		cancel()
		if err != nil && c.ctx.Err() == nil {
			c.log.Debug("server could not be told", "server", id, "poke", w.poke, "tasks", len(w.ids), "error", err)
		}
	}
}

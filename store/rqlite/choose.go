package rqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rqlite/gorqlite"
)

const (
	lookEvery   = 5 * time.Second        // how often the nodes are looked at
	lookAgain   = 500 * time.Millisecond // the least time between two looks
	lookTimeout = 2 * time.Second

	awayAfter = 5 * time.Second // when nothing has gone well for so long, queries are not kept waiting
	awayRead  = time.Second     // as long as they would otherwise be

	firstWait = 50 * time.Millisecond // between two attempts, doubling
	maxWait   = 500 * time.Millisecond
)

// node is the node that is used now.
func (d *DB) node() *node { return d.nodes[d.current.Load()] }

// use makes the node with this index the one that is used.
func (d *DB) use(i int32) {
	if d.current.Swap(i) != i {
		d.moves.Add(1)
	}
}

// leave is called when a node failed: the next one is used from now on, unless somebody else has left it already.
func (d *DB) leave(n *node, w way, err error) {
	at := d.current.Load()
	if d.nodes[at] == n && len(d.nodes) > 1 && d.current.CompareAndSwap(at, (at+1)%int32(len(d.nodes))) {
		d.moves.Add(1)
	}
	d.note(n, w, err)
	d.lookSoon()
}

// way is one of the two ways to the cluster, which fail apart: on a full disk rqlite still reads.
type way int

const (
	reading way = iota
	writing
	ways
)

// trouble is what requests meet; the zero value is none.
type trouble struct {
	err   error
	since time.Time
}

// trouble returns what lasts the longest; the caller holds mu.
func (d *DB) trouble() (t trouble) {
	for _, o := range d.troubles {
		if o.err != nil && (t.err == nil || o.since.Before(t.since)) {
			t = o
		}
	}
	return t
}

// note keeps what requests meet, and logs when trouble begins and when all of it is over.
func (d *DB) note(n *node, w way, err error) {
	d.mu.Lock()
	before := d.trouble()
	switch t := &d.troubles[w]; {
	case err != nil && t.err != nil:
		t.err = err
	case err != nil:
		*t = trouble{err, time.Now()}
	case w == writing:
		d.troubles = [ways]trouble{} // who can write can read
	default:
		*t = trouble{}
	}
	after := d.trouble()
	d.mu.Unlock()
	switch {
	case before.err == nil && after.err != nil:
		d.log.Warn("rqlite does not answer as it should; trying again, on each of its nodes", "node", n.address, "err", err)
	case before.err != nil && after.err == nil:
		d.log.Info("rqlite answers again", "node", n.address, "after", time.Since(before.since).Round(time.Millisecond))
	}
}

// away reports that for some time nothing could be read that must be new.
func (d *DB) away() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &d.troubles[reading]
	return t.err != nil && time.Since(t.since) > awayAfter
}

func (d *DB) lookSoon() {
	select {
	case d.look <- struct{}{}:
	default:
	}
}

// watch looks at the nodes now and then, and soon after a failure, and moves to the leader: a write costs half
// as much there as through another node.
func (d *DB) watch() {
	for {
		at := d.current.Load()
		if seen := d.lookAround(d.ctx); d.Health().Leader {
			d.note(d.node(), reading, nil)
		} else if d.ctx.Err() == nil {
			d.note(d.nodes[at], reading, seen[at].err)
		}
		if !sleep(d.ctx, lookAgain) {
			return
		}
		t := time.NewTimer(lookEvery - lookAgain)
		select {
		case <-d.look:
		case <-t.C:
		case <-d.ctx.Done():
		}
		t.Stop()
	}
}

// sleep waits; it returns false when ctx ended before.
func sleep(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sight is what a node answered when it was looked at.
type sight struct {
	ok     bool // the leader answered, perhaps through this node
	leader bool // this node is the leader
	took   time.Duration
	size   int64
	denied bool // trying again is of no use
	err    error
}

const sqlSize = `SELECT (SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size())`

// lookAround asks all nodes at the same time and uses the leader, or where none of them is the leader, the one that
// was quickest to reach it. It returns what it saw, by node.
func (d *DB) lookAround(ctx context.Context) []sight {
	seen := make([]sight, len(d.nodes))
	var wg sync.WaitGroup
	for i, n := range d.nodes {
		wg.Go(func() { seen[i] = n.see(ctx) })
	}
	wg.Wait()
	best := -1
	for i, s := range seen {
		if !s.ok {
			continue
		}
		b := &sight{}
		if best >= 0 {
			b = &seen[best]
		}
		if best < 0 || s.leader && !b.leader || s.leader == b.leader && s.took < b.took {
			best = i
		}
	}
	at := d.current.Load()
	if best >= 0 && (seen[best].leader || !seen[at].ok) { // among equals the node in use stays
		d.use(int32(best))
	}
	d.mu.Lock()
	d.leader = best >= 0
	if best >= 0 {
		d.size = seen[best].size
	}
	d.mu.Unlock()
	return seen
}

// see asks a node something that the leader must answer.
func (n *node) see(ctx context.Context) (s sight) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	ctx, c := newCall(ctx, n)
	start := time.Now()
	res, err := n.weak.QueryParameterizedContext(ctx, []gorqlite.ParameterizedStatement{{Query: sqlSize}})
	s.took = time.Since(start)
	if s.err = c.failure(); s.err != nil {
		s.denied = c.verdict() == denied
		return s
	}
	if err != nil || len(res) != 1 || !res[0].Next() {
		s.err = c.problem(err)
		return s
	}
	var size float64
	if err := res[0].Scan(&size); err == nil {
		s.size = int64(size)
	}
	s.ok, s.leader = true, !c.forwards
	return s
}

// await waits until the cluster has a leader. What waiting does not mend is an error at once.
func (d *DB) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.o.OpenTimeout)
	defer cancel()
	var last error // of a look that was not cut short by the end of the wait
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		var errs []error
		denied := 0
		for i, s := range d.lookAround(ctx) {
			n := d.nodes[i]
			if err := n.checkVersion(); err != nil {
				return err
			}
			if s.ok {
				return nil
			}
			errs = append(errs, s.err)
			if s.denied {
				denied++
			}
		}
		if denied == len(d.nodes) {
			return errors.Join(errs...)
		}
		if last == nil {
			d.log.Info("waiting for rqlite", "err", errors.Join(errs...))
		}
		if last == nil || ctx.Err() == nil {
			last = errors.Join(errs...)
		}
		if !sleep(ctx, wait) {
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("given up waiting for the cluster: %w", last)
			}
			return fmt.Errorf("the cluster has not answered for %v: %w", d.o.OpenTimeout, last)
		}
	}
}

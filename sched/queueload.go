package sched

import (
	"sync"
	"time"

	"dts"
)

// How much comes into each queue, and how long it takes, is kept for some minutes: loadSlices counts of loadSlice each.
const (
	loadSlice  = 30 * time.Second
	loadSlices = 10
	maxLoads   = 4096 // queues; of others nothing is kept
)

// loads counts what comes into the queues on this server. Its methods may be called concurrently.
type loads struct {
	mu     sync.Mutex
	queues map[dts.QueueKey]*[loadSlices]loadCount
	since  time.Time // when counting began
}

// loadCount is what came in one slice of time.
type loadCount struct {
	slice   int64 // since 1970; what is of an earlier round counts no more
	arrived int64
	ended   int64
	busy    time.Duration
}

// arrived counts an attempt that is due.
func (c *loads) arrived(tenant, queue string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.at(tenant, queue, now); n != nil {
		n.arrived++
	}
}

// ended counts an attempt that has run for so long.
func (c *loads) ended(tenant, queue string, now time.Time, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.at(tenant, queue, now); n != nil {
		n.ended++
		n.busy += took
	}
}

func (c *loads) at(tenant, queue string, now time.Time) *loadCount {
	if c.queues == nil {
		c.queues, c.since = map[dts.QueueKey]*[loadSlices]loadCount{}, now
	}
	k := dts.QueueKey{TenantID: tenant, Name: queue}
	ring := c.queues[k]
	if ring == nil {
		if len(c.queues) >= maxLoads {
			return nil
		}
		ring = new([loadSlices]loadCount)
		c.queues[k] = ring
	}
	slice := now.UnixNano() / int64(loadSlice)
	n := &ring[slice%loadSlices]
	if n.slice != slice {
		*n = loadCount{slice: slice}
	}
	return n
}

// of returns what came into the queues of a tenant lately; of all tenants together where tenant is "".
func (c *loads) of(tenant string, now time.Time) map[string]dts.QueueLoad {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := now.UnixNano()/int64(loadSlice) - loadSlices + 1
	over := min(now.Sub(time.Unix(0, first*int64(loadSlice))), max(now.Sub(c.since), time.Second))
	all := map[string]dts.QueueLoad{}
	for k, ring := range c.queues {
		one, live := dts.QueueLoad{Seconds: over.Seconds()}, false
		for i := range ring {
			if n := &ring[i]; n.slice >= first {
				live = true
				one.Arrived += n.arrived
				one.Ended += n.ended
				one.BusySeconds += n.busy.Seconds()
			}
		}
		if !live {
			delete(c.queues, k)
		} else if tenant == "" || tenant == k.TenantID {
			all[k.Name] = all[k.Name].Plus(one)
		}
	}
	return all
}

// QueueLoads returns what has come into the queues of a tenant on this server in the last minutes.
func (s *Scheduler) QueueLoads(tenant string) map[string]dts.QueueLoad {
	return s.loads.of(tenant, s.clock.now())
}

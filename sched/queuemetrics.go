package sched

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dts"
)

const (
	shownQueues  = 100             // queues with figures of their own: those in which most waits, then most runs
	queuesFresh  = 5 * time.Second // counting them is not free, and not done more often
	queuesWithin = 2 * time.Second // what takes longer is left out
)

var (
	queueDepthDesc     = prometheus.NewDesc("dts_queue_depth", "Tasks of a queue that are due and wait to start, on all servers; up to 10000. Told by one server, for the 100 fullest queues.", []string{"queue"}, nil)
	queueRunningDesc   = prometheus.NewDesc("dts_queue_running", "Tasks of a queue that run, on all servers.", []string{"queue"}, nil)
	queueAgeDesc       = prometheus.NewDesc("dts_queue_oldest_age_seconds", "How long the task of a queue that was due first has waited.", []string{"queue"}, nil)
	queuePausedDesc    = prometheus.NewDesc("dts_queue_paused", "1 when a queue is paused.", []string{"queue"}, nil)
	queueSuggestedDesc = prometheus.NewDesc("dts_queue_suggested_concurrency", "How many of a queue's tasks at once keep up with what has come in on this server in the last minutes; absent where too little has run.", []string{"queue"}, nil)
)

// queueGauges counts what is in the queues when they are asked for. What all servers have together is told by one of them:
// the holder of the first shard.
type queueGauges struct {
	s     *Scheduler
	mu    sync.Mutex
	at    time.Time
	known map[string]dts.QueueState
}

// Describe implements prometheus.Collector.
func (g *queueGauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueDepthDesc, queueRunningDesc, queueAgeDesc, queuePausedDesc, queueSuggestedDesc} {
		c <- d
	}
}

// Collect implements prometheus.Collector.
func (g *queueGauges) Collect(c chan<- prometheus.Metric) {
	states, paused := g.states(), g.s.rules.pausedQueues()
	gauge := func(d *prometheus.Desc, v float64, queue string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, queue)
	}
	for _, name := range fullest(states) {
		st := states[name]
		gauge(queueDepthDesc, float64(st.Waiting), name)
		gauge(queueRunningDesc, float64(st.Running), name)
		gauge(queueAgeDesc, st.OldestAgeSeconds, name)
	}
	if states != nil {
		for _, name := range paused[:min(len(paused), shownQueues)] {
			gauge(queuePausedDesc, 1, name)
		}
	}
	loads := g.s.QueueLoads("")
	names := slices.SortedFunc(maps.Keys(loads), func(a, b string) int {
		return cmp.Or(cmp.Compare(loads[b].Arrived, loads[a].Arrived), strings.Compare(a, b))
	})
	for _, name := range names[:min(len(names), shownQueues)] {
		if n := loads[name].Suggested(); n > 0 {
			gauge(queueSuggestedDesc, float64(n), name)
		}
	}
}

// states returns what goes on in the queues of all tenants; nil where another server tells it, or the database does not.
func (g *queueGauges) states() map[string]dts.QueueState {
	if g.s.ctx == nil || !g.s.holds(0) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.s.clock.now()
	if age := now.Sub(g.at); g.known != nil && age >= 0 && age < queuesFresh {
		return g.known
	}
	ctx, cancel := context.WithTimeout(g.s.ctx, queuesWithin)
	defer cancel()
	states, err := g.s.o.Store.QueueStates(ctx, "", now, false)
	if err != nil {
		g.s.log.Debug("the queues could not be counted for the metrics", "err", err)
		return nil
	}
	g.at, g.known = now, states
	return states
}

// fullest returns the queues that are shown.
func fullest(states map[string]dts.QueueState) []string {
	names := slices.SortedFunc(maps.Keys(states), func(a, b string) int {
		x, y := states[a], states[b]
		return cmp.Or(cmp.Compare(y.Waiting, x.Waiting), cmp.Compare(y.Running, x.Running), strings.Compare(a, b))
	})
	return names[:min(len(names), shownQueues)]
}

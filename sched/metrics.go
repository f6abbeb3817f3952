package sched

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dts"
)

// metrics are the scheduler's figures for Prometheus. Gauges are read from the loop when they are asked for.
type metrics struct {
	s *Scheduler

	scheduled, started, succeeded, failed, retried, skipped, deleted, preempted prometheus.Counter
	lateness, duration                                                          prometheus.Histogram
	warnings                                                                    *prometheus.CounterVec
}

func newMetrics(s *Scheduler) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		s:         s,
		scheduled: counter("dts_tasks_scheduled_total", "Tasks created, planned occurrences included."),
		started:   counter("dts_attempts_started_total", "Attempts started."),
		succeeded: counter("dts_attempts_succeeded_total", "Attempts that succeeded."),
		failed:    counter("dts_attempts_failed_total", "Attempts that did not succeed."),
		retried:   counter("dts_attempts_retried_total", "Failed attempts that another one follows."),
		skipped:   counter("dts_skips_total", "Skips recorded: single instants and ranges."),
		warnings:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dts_warnings_total", Help: "Runs that were not as was asked for: started late, took long or short."}, []string{"warning"}),
		deleted:   counter("dts_tasks_deleted_total", "Finished tasks deleted by retention."),
		preempted: counter("dts_preemptions_total", "Times a running command was stopped for one of high priority."),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dts_lateness_seconds", Help: "Start of an attempt minus when it was due.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 60, 300, 3600}}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dts_duration_seconds", Help: "Duration of an attempt.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}}),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.scheduled, m.started, m.succeeded, m.failed, m.retried, m.skipped, m.deleted, m.preempted, m.warnings, m.lateness, m.duration, gauges{m.s}, &queueGauges{s: m.s}}
}

// observe counts the end of an attempt.
func (m *metrics) observe(r *dts.Record) {
	m.duration.Observe((time.Duration(r.Attempt.DurationUS) * time.Microsecond).Seconds())
	if r.Attempt.State == dts.AttemptSuccess {
		m.succeeded.Inc()
		return
	}
	m.failed.Inc()
	if r.After.Status == dts.Pending {
		m.retried.Inc()
	}
}

// gauges reads the loop's status at each scrape.
type gauges struct{ s *Scheduler }

var (
	heapDesc      = prometheus.NewDesc("dts_heap_size", "Tasks held in memory until they are due.", nil, nil)
	claimedDesc   = prometheus.NewDesc("dts_claimed", "Tasks claimed and not yet due.", nil, nil)
	readyDesc     = prometheus.NewDesc("dts_waiting", "Tasks due, waiting for a slot.", []string{"target_type"}, nil)
	runningDesc   = prometheus.NewDesc("dts_running", "Attempts running.", []string{"target_type"}, nil)
	lagDesc       = prometheus.NewDesc("dts_scheduler_lag_seconds", "How late the oldest due task that has not started is.", nil, nil)
	unwrittenDesc = prometheus.NewDesc("dts_unwritten_results", "Results on their way to the disk.", nil, nil)
	readyStDesc   = prometheus.NewDesc("dts_ready", "1 when the scheduler fires and its writes succeed.", nil, nil)
	heldDesc      = prometheus.NewDesc("dts_shards_held", "Shards that this server holds, of 64.", nil, nil)
	leaseDesc     = prometheus.NewDesc("dts_lease_seconds", "How long this server may go on starting tasks without a sign from the database; absent where it is alone.", nil, nil)
	nodesDesc     = prometheus.NewDesc("dts_nodes", "Servers that share the schedule, by state; absent where this one is alone.", []string{"state"}, nil)
	syncDesc      = prometheus.NewDesc("dts_clock_synchronised", "1 when the kernel says that something keeps the clock right; absent where it does not tell.", nil, nil)
	skewDesc      = prometheus.NewDesc("dts_clock_skew_seconds", "How far the clock of another server is ahead of this one's.", []string{"node"}, nil)
	parkedDesc    = prometheus.NewDesc("dts_parked", "Tasks due, waiting for resources of this server or for a host that is backed off.", []string{"target_type"}, nil)
	stoppedDesc   = prometheus.NewDesc("dts_commands_stopped", "Running commands that stand while others of high priority have their slots.", nil, nil)
	resourceDesc  = prometheus.NewDesc("dts_resources", "Cores, and MiB of memory, that the server has for tasks that ask for some.", []string{"resource"}, nil)
	allocatedDesc = prometheus.NewDesc("dts_resources_allocated", "Of these, those that running tasks have.", []string{"resource"}, nil)
	hostsDesc     = prometheus.NewDesc("dts_hosts_backed_off", "HTTP hosts that are called less often at once, because they are slow or refuse calls.", nil, nil)
	stepsDesc     = prometheus.NewDesc("dts_clock_steps_total", "Times the wall clock was stepped since the start.", nil, nil)
)

func (g gauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{heapDesc, claimedDesc, readyDesc, runningDesc, lagDesc, unwrittenDesc, readyStDesc, heldDesc, leaseDesc, nodesDesc, stepsDesc, syncDesc, skewDesc, parkedDesc, stoppedDesc, resourceDesc, allocatedDesc, hostsDesc} {
		c <- d
	}
}

func (g gauges) Collect(c chan<- prometheus.Metric) {
	st := g.s.Status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(heapDesc, float64(st.HeapSize))
	gauge(claimedDesc, float64(st.Claimed))
	for _, p := range st.Pools {
		gauge(readyDesc, float64(p.Ready), string(p.TargetType))
		gauge(runningDesc, float64(p.Running), string(p.TargetType))
		gauge(parkedDesc, float64(p.Parked), string(p.TargetType))
		if p.TargetType == dts.Command {
			gauge(stoppedDesc, float64(p.Stopped))
		}
	}
	if r := st.Resources; r != nil {
		gauge(resourceDesc, r.CPU, "cpu")
		gauge(allocatedDesc, r.CPUUsed, "cpu")
		gauge(resourceDesc, float64(r.MemoryMB), "memory_mb")
		gauge(allocatedDesc, float64(r.MemoryMBUsed), "memory_mb")
	}
	gauge(hostsDesc, float64(st.HostsBackedOff))
	gauge(lagDesc, float64(st.LagUS)/1e6)
	gauge(unwrittenDesc, float64(st.UnwrittenRuns))
	ready := 0.0
	if st.Ready {
		ready = 1
	}
	gauge(readyStDesc, ready)
	gauge(heldDesc, float64(g.s.fence().Terms.Held().Len()))
	if st.Lease != nil {
		gauge(leaseDesc, st.Lease.SecondsLeft)
		states := map[string]int{}
		for _, n := range st.Nodes {
			states[n.State]++
			if !n.Self && dts.NodeState(n.State).Runs() {
				gauge(skewDesc, float64(n.ClockSkewMS)/1000, n.ID)
			}
		}
		for state, n := range states {
			gauge(nodesDesc, float64(n), state)
		}
	}
	if st.Clock != nil && st.Clock.Synchronised != nil {
		synchronised := 0.0
		if *st.Clock.Synchronised {
			synchronised = 1
		}
		gauge(syncDesc, synchronised)
	}
	c <- prometheus.MustNewConstMetric(stepsDesc, prometheus.CounterValue, float64(st.ClockSteps))
}

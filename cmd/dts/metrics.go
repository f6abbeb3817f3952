package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"dts/store"
	"dts/store/rqlite"
)

// newStoreMetrics registers the figures of the process and the store, and returns what observes each commit.
func newStoreMetrics(r prometheus.Registerer, b store.Backend) func(batches, stmts int, d time.Duration, err error) {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dts_group_commit_batches", Help: "Batches that one commit held.",
		Buckets: prometheus.ExponentialBuckets(1, 4, 8)})
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dts_group_commit_seconds", Help: "Duration of a commit.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}})
	failed := prometheus.NewCounter(prometheus.CounterOpts{Name: "dts_group_commit_failures_total", Help: "Commits that did not succeed, refused ones included."})
	gauge := func(name, help string, read func(store.BackendStats) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return read(b.Stats()) })
	}
	r.MustRegister(size, latency, failed,
		gauge("dts_wal_bytes", "Size of the write-ahead log.", func(s store.BackendStats) float64 { return float64(s.WALBytes) }),
		gauge("dts_database_bytes", "Size of the database file.", func(s store.BackendStats) float64 { return float64(s.DBBytes) }),
		gauge("dts_database_corrupt", "1 when a check found damage; writes are refused.", func(s store.BackendStats) float64 {
			if s.Corrupt {
				return 1
			}
			return 0
		}),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return func(batches, _ int, d time.Duration, err error) {
		size.Observe(float64(batches))
		latency.Observe(d.Seconds())
		if err != nil {
			failed.Inc()
		}
	}
}

// newRqliteMetrics registers how the rqlite cluster looks from here.
func newRqliteMetrics(r prometheus.Registerer, db *rqlite.DB) {
	flag := func(name, help string, read func(rqlite.Health) bool) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if read(db.Health()) {
				return 1
			}
			return 0
		})
	}
	r.MustRegister(
		flag("dts_rqlite_leader", "1 when the rqlite cluster had a leader at the last look, a few seconds ago.", func(h rqlite.Health) bool { return h.Leader }),
		flag("dts_rqlite_failing", "1 while requests to rqlite meet errors.", func(h rqlite.Health) bool { return h.Err != nil }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dts_rqlite_node_changes_total", Help: "Times that another node of rqlite was chosen."},
			func() float64 { return float64(db.Health().Moves) }))
}

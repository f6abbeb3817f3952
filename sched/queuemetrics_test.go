package sched_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dts"
	"dts/sched"
)

// TestQueueMetrics: each queue has its figures, and of very many queues the fullest have.
func TestQueueMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	inWorld(t, func(o *sched.Options) { o.Registry = reg }, func(w *world) {
		w.run.behave(takes(time.Hour))
		figures := func() map[string]float64 {
			t.Helper()
			w.settle(10 * time.Second)
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]float64{}
			for _, f := range families {
				if name, is := strings.CutPrefix(f.GetName(), "dts_queue_"); is {
					for _, m := range f.GetMetric() {
						all[m.GetLabel()[0].GetValue()+" "+name] = m.GetGauge().GetValue()
					}
				}
			}
			return all
		}
		if _, err := w.s.PutQueue(w.ctx, &dts.Queue{Name: "narrow", Concurrency: 2}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			w.add(0, func(k *dts.Task) { k.Queue = "narrow" })
		}
		if _, err := w.s.PauseQueue(w.ctx, dts.DefaultTenant, "shut", ""); err != nil {
			t.Fatal(err)
		}
		got := figures()
		for name, want := range map[string]float64{"narrow depth": 3, "narrow running": 2, "narrow oldest_age_seconds": 10, "shut paused": 1} {
			if got[name] != want {
				t.Errorf("%s is %v, want %v; all: %v", name, got[name], want, got)
			}
		}
		for i := range 150 {
			w.add(0, func(k *dts.Task) { k.Queue = fmt.Sprint("q", i) })
		}
		n := 0
		for name := range figures() {
			if strings.HasSuffix(name, " depth") {
				n++
			}
		}
		if n != 100 {
			t.Errorf("%d queues have a depth", n)
		}
	})
}

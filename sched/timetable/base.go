package timetable

import "dts/sched/cron"

// Base is the schedule without its calendars: every instant of it runs, or is one that Excluded tells of.
func (t *Table) Base() cron.Schedule { return t.base }

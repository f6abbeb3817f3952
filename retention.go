package dts

import "time"

// Retention says how long finished tasks are kept. Zero fields set no limit of their own.
type Retention struct {
	Seconds float64 `json:"seconds,omitempty" doc:"after their end"`
	Rows    int64   `json:"rows,omitempty" doc:"at most so many; the oldest go first"`
	Bytes   int64   `json:"bytes,omitempty" doc:"at most so much, about, with targets, errors and output; the oldest go first"`
}

// Or returns the retention with what it leaves open taken from another one.
func (r Retention) Or(o Retention) Retention {
	if r.Seconds == 0 {
		r.Seconds = o.Seconds
	}
	if r.Rows == 0 {
		r.Rows = o.Rows
	}
	if r.Bytes == 0 {
		r.Bytes = o.Bytes
	}
	return r
}

// Age is how long finished tasks are kept; 0 is no limit.
func (r Retention) Age() time.Duration { return seconds(r.Seconds) }

// RetentionState is how long the finished tasks of a tenant are kept.
type RetentionState struct {
	Retention
	Effective Retention `json:"effective" doc:"what holds: what is set here, else what the server was started with"`
}

// Normalize checks a tenant's retention.
func (r *Retention) Normalize() error {
	var f fieldErrors
	r.normalize(&f, "")
	return f.err()
}

func (r *Retention) normalize(f *fieldErrors, prefix string) {
	if r.Seconds != 0 {
		checkSeconds(f, prefix+"seconds", r.Seconds, 1, 100*365*24*3600)
	}
	if r.Rows < 0 {
		f.add(prefix+"rows", "%d is negative; use 0 for no limit", r.Rows)
	}
	if r.Bytes < 0 {
		f.add(prefix+"bytes", "%d is negative; use 0 for no limit", r.Bytes)
	}
}

// Finished counts finished tasks of a queue.
type Finished struct {
	TenantID, Queue string
	Rows, Bytes     int64 // the bytes are about what they take
}

// FinishedMark is a place in the order in which tasks have ended.
type FinishedMark struct {
	At  time.Time
	Seq int64 // of tasks that ended at the same time: see Task.Seq
}

// Cut says which finished tasks are to be deleted: of a tenant, or of one of its queues, those after a mark that ended
// before a time; and the oldest others, while fewer than Rows, or less than Bytes, have gone. What ended at Through or later
// stays in any case.
type Cut struct {
	TenantID    string
	Queue       string // "": every queue
	After       FinishedMark
	Before      time.Time
	Rows, Bytes int64
	Through     time.Time
}

// Deletion is what became of a Cut.
type Deletion struct {
	Deleted []Finished
	Next    FinishedMark // up to here nothing is left to delete
	More    bool         // behind it there may be
}

// SkipMark is a place in the order in which skips are stored.
type SkipMark struct {
	RecurringTaskID string
	From            int64 // Unix microseconds
}

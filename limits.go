package dts

import (
	"math"
	"slices"
	"time"
)

// Limits of what runs at once.
const (
	MaxConcurrency = 10_000 // of a concurrency_key or a queue
	MaxQueues      = 1000   // with settings, of one tenant
	MaxRate        = 1_000_000
	MaxRatePeriod  = 24 * time.Hour
)

// Slot is a place that an attempt needs, for as long as it runs, in something of which only so many may run at once,
// on all servers together.
type Slot struct {
	Line  string // see KeyLine and QueueLine
	Limit int    // how many may have one
}

// KeyLine is the line in which tasks with a concurrency_key wait for each other.
func KeyLine(key string) string { return "key " + key }

// QueueLine is the line in which tasks wait that are in a queue with a limit.
func QueueLine(queue string) string { return "queue " + queue }

// Line is the line in which a PENDING task waits for a slot; "" when it waits for none.
func (t *Task) Line() string {
	switch {
	case t.Status != Pending:
	case t.WaitsFor == ReasonConcurrency:
		return KeyLine(t.ConcurrencyKey)
	case t.WaitsFor == ReasonQueue:
		return QueueLine(t.Queue)
	}
	return ""
}

// LineKey names a line: of a tenant.
type LineKey struct{ TenantID, Line string }

// QueueKey names a queue: of a tenant.
type QueueKey struct{ TenantID, Name string }

// Key is the queue's name and tenant.
func (q *Queue) Key() QueueKey { return QueueKey{q.TenantID, q.Name} }

// QueueChoice is all queues, or only some, or all but some. At most one of the two is set.
type QueueChoice struct{ Only, Except []QueueKey }

// Has reports whether a queue is among them.
func (c QueueChoice) Has(k QueueKey) bool {
	if c.Only != nil {
		return slices.Contains(c.Only, k)
	}
	return !slices.Contains(c.Except, k)
}

// Queue is a named queue with settings of its own. Others need not be made: a task names one and it is there.
type Queue struct {
	TenantID      string     `json:"-"`
	Name          string     `json:"name"`
	Concurrency   int        `json:"concurrency,omitempty" doc:"so many of its tasks run at once, on all servers together; 0: no limit"`
	Rate          int        `json:"rate,omitempty" doc:"so many of its attempts start in a period, evenly spread, on all servers together; 0: no limit"`
	PeriodSeconds float64    `json:"period_seconds,omitempty" doc:"of rate; default 1"`
	Burst         int        `json:"burst,omitempty" doc:"after a rest, so many may start at once, where rate is set; default 1"`
	Retry         *Retry     `json:"retry,omitempty" doc:"of tasks that are created in it without a retry of their own"`
	Retention     *Retention `json:"retention,omitempty" doc:"of its finished tasks, where it is less than that of the tenant"`
	Paused        bool       `json:"paused,omitempty" doc:"nothing of it starts"`
	PausedAt      time.Time  `json:"paused_at,omitzero"`
	PauseNote     string     `json:"pause_note,omitempty"`
	CreatedAt     time.Time  `json:"created_at,omitzero" doc:"absent where it has no settings"`
	UpdatedAt     time.Time  `json:"updated_at,omitzero"`

	QueueState
}

// QueueState is what goes on in a queue.
type QueueState struct {
	Running          int64   `json:"running" doc:"of its tasks, those that run"`
	Waiting          int64   `json:"waiting" doc:"of its tasks, those that are due and wait to start, up to 10000"`
	OldestAgeSeconds float64 `json:"oldest_age_seconds" doc:"how long the one that was due first has waited"`
	Suggested        int     `json:"suggested_concurrency,omitempty" doc:"how many at once would keep up with what came in lately; absent where too little has run"`
}

// QueueLoad is how much came into a queue lately, and how long it took.
type QueueLoad struct {
	Seconds     float64 // the time that was looked at
	Arrived     int64   // attempts that were due in it
	Ended       int64   // attempts that ended in it
	BusySeconds float64 // how long those took, all together
}

// Plus returns the load of two servers, or of the queues of that name of two tenants.
func (l QueueLoad) Plus(o QueueLoad) QueueLoad {
	return QueueLoad{max(l.Seconds, o.Seconds), l.Arrived + o.Arrived, l.Ended + o.Ended, l.BusySeconds + o.BusySeconds}
}

// suggestFrom is of how many ended attempts it can be told how long one takes.
const suggestFrom = 10

// Suggested is how many at once keep up with what comes in: as many as run at once on average (Little's law: arrivals
// a second times the seconds that each takes), rounded up. 0: too little has run to tell.
func (l QueueLoad) Suggested() int {
	if l.Ended < suggestFrom || l.Seconds <= 0 {
		return 0
	}
	n := math.Ceil(float64(l.Arrived) / l.Seconds * l.BusySeconds / float64(l.Ended))
	return int(min(max(n, 1), MaxConcurrency))
}

// Settled reports whether a queue has settings that anything hangs on.
func (q *Queue) Settled() bool {
	return q.Concurrency > 0 || q.Rate > 0 || q.Retry != nil || q.Retention != nil || q.Paused
}

// Normalize checks a queue.
func (q *Queue) Normalize() error {
	var f fieldErrors
	checkQueueName(&f, "name", q.Name)
	if q.Concurrency < 0 || q.Concurrency > MaxConcurrency {
		f.add("concurrency", "%d is out of range; use 1 to %d, or 0 for no limit", q.Concurrency, MaxConcurrency)
	}
	switch {
	case q.Rate < 0 || q.Rate > MaxRate:
		f.add("rate", "%d is out of range; use 1 to %d, or 0 for no limit", q.Rate, MaxRate)
	case q.Rate == 0 && (q.PeriodSeconds != 0 || q.Burst != 0):
		f.add("rate", "is missing, and period_seconds and burst mean nothing without it")
	case q.Rate > 0:
		if q.PeriodSeconds == 0 {
			q.PeriodSeconds = 1
		}
		if q.Burst == 0 {
			q.Burst = 1
		}
		checkSeconds(&f, "period_seconds", q.PeriodSeconds, 1, MaxRatePeriod.Seconds())
		if q.Burst < 1 || q.Burst > MaxRate {
			f.add("burst", "%d is out of range; use 1 to %d", q.Burst, MaxRate)
		}
	}
	if q.Retry != nil {
		q.Retry.normalize(&f, AtLeastOnce)
	}
	if q.Retention != nil {
		q.Retention.normalize(&f, "retention.")
	}
	checkText(&f, "pause_note", q.PauseNote, MaxDescription)
	if q.TenantID == "" {
		q.TenantID = DefaultTenant
	}
	return f.err()
}

func checkQueueName(f *fieldErrors, field, name string) {
	if !queueName.MatchString(name) {
		f.add(field, "%q is not a queue name; use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning and ending with a letter or digit", clip(name))
	}
}

// normalizeConcurrency checks concurrency_key and concurrency_limit.
func (s *Spec) normalizeConcurrency(f *fieldErrors) {
	checkText(f, "concurrency_key", s.ConcurrencyKey, MaxKey)
	switch {
	case s.ConcurrencyKey == "" && s.ConcurrencyLimit != 0:
		f.add("concurrency_limit", "is set without concurrency_key; give one, or leave it out")
	case s.ConcurrencyKey == "":
	case s.ConcurrencyLimit == 0:
		s.ConcurrencyLimit = 1
	case s.ConcurrencyLimit < 1 || s.ConcurrencyLimit > MaxConcurrency:
		f.add("concurrency_limit", "%d is out of range; use 1 to %d", s.ConcurrencyLimit, MaxConcurrency)
	}
}

package dts

import "time"

// Limits of what runs at once.
const (
	MaxConcurrency = 10_000 // of a concurrency_key or a queue
	MaxQueues      = 1000   // with a limit, of one tenant
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

// Queue is a named queue with a limit. Others need not be made: a task names one and it is there.
type Queue struct {
	TenantID    string    `json:"-"`
	Name        string    `json:"name"`
	Concurrency int       `json:"concurrency" doc:"so many of its tasks run at once, on all servers together"`
	Running     int64     `json:"running" doc:"of its tasks, those that run and count"`
	Waiting     int64     `json:"waiting" doc:"of its tasks, those that are due and wait because so many run"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// Normalize checks a queue.
func (q *Queue) Normalize() error {
	var f fieldErrors
	checkQueueName(&f, "name", q.Name)
	if q.Concurrency < 1 || q.Concurrency > MaxConcurrency {
		f.add("concurrency", "%d is out of range; use 1 to %d", q.Concurrency, MaxConcurrency)
	}
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

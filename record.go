package dts

import "time"

// Entry is what the scheduler keeps in memory of a task that it has not claimed yet.
type Entry struct {
	TaskID          string
	Seq             int64 // order of creation; breaks ties
	RunAt           time.Time
	MissAt          time.Time // a planned occurrence not claimed by then counts as missed; zero: never
	Rank            int       // priority: 0 HIGH, 1 MEDIUM, 2 LOW
	Shard           int
	TargetType      TargetType
	RecurringTaskID string
	TenantID        string
	Queue           string
}

// Mark is a place in the order of due tasks.
type Mark struct {
	RunAt time.Time
	Rank  int
	Seq   int64
}

// Before reports whether a mark comes before another in the order of due tasks.
func (m Mark) Before(o Mark) bool {
	switch {
	case !m.RunAt.Equal(o.RunAt):
		return m.RunAt.Before(o.RunAt)
	case m.Rank != o.Rank:
		return m.Rank < o.Rank
	}
	return m.Seq < o.Seq
}

// Before reports whether an entry comes before the mark.
func (e *Entry) Before(m Mark) bool { return e.Mark().Before(m) }

// Mark is the place of the entry itself.
func (e *Entry) Mark() Mark { return Mark{e.RunAt, e.Rank, e.Seq} }

// Entry returns what the scheduler keeps of a task. One that has started once cannot be missed any more.
func (t *Task) Entry() Entry {
	miss := t.MissAt
	if t.Attempts > 0 {
		miss = time.Time{}
	}
	return Entry{t.ID, t.Seq, t.RunAt, miss, t.Priority.Rank(), t.Shard, t.TargetType, t.RecurringTaskID, t.TenantID, t.Queue}
}

// Record is one step of an attempt on its way to the disk: its start, its end, or both at once.
type Record struct {
	Task    *Task // as it was when the attempt began: before it, Task.Attempts is Attempt.Number - 1
	Attempt Attempt
	Term    int64    // of the task's shard when the attempt began
	Shown   bool     // of an end: the start was written before
	Limited bool     // of an end: the attempt may have slots, which it gives back
	Process *Process // of a command that is still running
	Output  Output
	// After is nil for a start. For an end it is the task as it is afterwards: finished, or PENDING with
	// next_attempt_at.
	After *Task
}

// Change replaces one task that no runner has: Old is what it must still be, New what it becomes; nil
// deletes it with its attempts and output. Skip records the instant of a planned occurrence that will not run. Insert is
// a new task that takes the place of one that ends by the change, with its dedupe_key; if its idempotency key belongs to
// another task already, the change is refused.
//
// A task that has ended and is PENDING again runs whatever it depends on, and what depends on it and has not started
// waits for it anew. So does one run whose New.Unresolved is 0 while Old's is not. Otherwise Unresolved is the store's own.
type Change struct {
	Old, New *Task
	Skip     *Skip
	Insert   *Task

	DependsOn []DependsOn // from now on, too
	Undepend  string      // the parent on which it does not depend any more

	// Again is for a task that has ended and is PENDING again, and says what has become of each of its dependencies: it waits
	// for those that are OPEN. nil: it runs whatever it depends on.
	Again []Dependency
	// Resolved asserts that it does not wait for anything.
	Resolved bool
}

// Plan is one atomic step of planning a recurring task. Old is what it must still be (its plan_version,
// planned_through and status are asserted), New what it becomes.
type Plan struct {
	Old, New *RecurringTask
	Insert   []*Task     // new occurrences
	Changes  []Change    // upcoming occurrences that go or change
	Skips    []Skip      // instants that will not run
	Unskip   []time.Time // where skips begin that do not count any more; deleted before Skips are written
}

// Lost is an attempt that was running when its node's term ended.
type Lost struct {
	Task    *Task
	Attempt *Attempt
}

// TokenKind says what a credential is for.
type TokenKind string

const (
	TokenAPI     TokenKind = "api"     // a bearer token
	TokenSession TokenKind = "session" // the page's cookie
	TokenLink    TokenKind = "link"    // a one-time sign-in link
)

// Token is a stored credential. Its text is not kept, only its SHA-256 in hexadecimal.
type Token struct {
	Hash      string
	TenantID  string
	Kind      TokenKind
	Name      string
	Admin     bool
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
}

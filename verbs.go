package dts

// Verb is what a user can do to a task.
type Verb string

const (
	Modify        Verb = "modify"
	Cancel        Verb = "cancel"
	RetryNow      Verb = "retry"
	ForceComplete Verb = "force-complete"
	RunNow        Verb = "run-now"
	Delete        Verb = "delete"
	PauseTask     Verb = "pause"
	ResumeTask    Verb = "resume"
)

// Effect is what a verb does to a task in one state.
type Effect int

const (
	Refuse     Effect = iota // 409: the state does not allow it
	Update                   // change its fields, stay PENDING
	Kill                     // stop the attempt, then CANCELLED
	SetCancel                // become CANCELLED at once
	SetSuccess               // become SUCCESS at once, without a run
	Requeue                  // become PENDING, due now, with one more attempt allowed
	FireNow                  // stay PENDING, due now
	Remove                   // the row, its attempts and its output are deleted
	Nothing                  // it is so already
	Suspend                  // stay PENDING, and do not start until it is resumed
	Unsuspend                // start when it is due, or now when that has passed; nothing to one that is not paused
)

// effects is the table of verbs × states. PENDING includes claimed tasks: as long as no runner has one it
// can still be changed. Once handed to a runner a modify is refused and a cancel kills.
var effects = map[Verb]map[Status]Effect{
	Modify:        {Pending: Update},
	Cancel:        {Pending: SetCancel, Running: Kill, Cancelled: Nothing},
	RetryNow:      {Failed: Requeue, Cancelled: Requeue, Skipped: Requeue},
	ForceComplete: {Pending: SetSuccess, Failed: SetSuccess, Cancelled: SetSuccess, Skipped: SetSuccess, Success: Nothing},
	RunNow:        {Pending: FireNow},
	PauseTask:     {Pending: Suspend},
	ResumeTask:    {Pending: Unsuspend},
	Delete:        {Pending: Remove, Success: Remove, Failed: Remove, Cancelled: Remove, Skipped: Remove},
}

// hints say what would be right where a verb is refused.
var hints = map[Verb]string{
	Modify:        "only a PENDING task can be modified",
	Cancel:        "only a PENDING or RUNNING task can be cancelled",
	RetryNow:      "only a FAILED, CANCELLED or SKIPPED task can be retried",
	ForceComplete: "cancel the run first, then force-complete it",
	RunNow:        "only a PENDING task can be run now; retry a finished one",
	PauseTask:     "only a PENDING task can be paused",
	ResumeTask:    "only a PENDING task that was paused can be resumed",
	Delete:        "cancel the run first, then delete it",
}

// Do returns what verb does to a task in this state, or an ErrConflict error that says what would be right.
func (v Verb) Do(s Status) (Effect, error) {
	e := effects[v][s]
	if e == Refuse {
		return e, Errorf(ErrConflict, "the task is %s: %s", s, hints[v])
	}
	return e, nil
}

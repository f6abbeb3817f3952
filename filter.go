package dts

import "time"

// TaskFilter selects tasks of one tenant, newest first. Zero fields do not filter.
type TaskFilter struct {
	TenantID        string
	IDs             []string // at most MaxBulk
	Statuses        []Status
	Queue           string
	Name            string // exact
	NamePrefix      string // the name begins so
	Error           string // last_error contains it; a to z match A to Z
	Labels          map[string]string
	CreatedBy       string
	RecurringTaskID string
	BatchID         string
	WorkflowID      string // steps of this run of a workflow
	NoSteps         bool   // leaves out the steps of workflows whose run is there
	DedupeKey       string
	ConcurrencyKey  string
	WaitsFor        Reason    // PENDING tasks that it keeps from starting
	NotPaused       bool      // leaves out PENDING tasks that are paused
	From, To        time.Time // run_at in [From, To); due_at of a task that is paused
	EndedBefore     time.Time // completed_at before this
	Cursor          string    // from the page before
	Limit           int       // 1 to 1000
}

// Selects reports whether the filter leaves out anything of its tenant.
func (f *TaskFilter) Selects() bool {
	return len(f.IDs) > 0 || len(f.Statuses) > 0 || f.Queue != "" || f.Name != "" || f.NamePrefix != "" || f.Error != "" || len(f.Labels) > 0 ||
		f.CreatedBy != "" || f.RecurringTaskID != "" || f.BatchID != "" || f.WorkflowID != "" || f.DedupeKey != "" || f.ConcurrencyKey != "" || f.WaitsFor != "" ||
		!f.From.IsZero() || !f.To.IsZero() || !f.EndedBefore.IsZero()
}

// RecurringFilter selects recurring tasks of one tenant, newest first.
type RecurringFilter struct {
	TenantID string
	Statuses []RecurringStatus
	Name     string // exact
	Cursor   string
	Limit    int
}

// Page is part of a list. A page can be shorter than its limit, even empty, and not be the last one,
// because one request looks at a bounded number of rows; Next is empty on the last.
type Page[T any] struct {
	Items []T
	Next  string
}

// Created is the answer to a create: the task, and whether it existed already under its idempotency key.
type Created[T any] struct {
	Item    T
	Existed bool
}

// Counts says how many tasks of a tenant are in a state. Unknown beyond Limit: then Capped is true.
type Counts struct {
	Pending int64 `json:"pending"`
	Running int64 `json:"running"`
	Failed  int64 `json:"failed"`
	Capped  bool  `json:"capped,omitempty" doc:"at least one count stopped at 10000"`
}

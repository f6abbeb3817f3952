package dts

import "time"

// TaskFilter selects tasks of one tenant, newest first. Zero fields do not filter.
type TaskFilter struct {
	TenantID        string
	IDs             []string // at most MaxBulk
	Statuses        []Status
	Queue           string
	Name            string // exact
	Labels          map[string]string
	CreatedBy       string
	RecurringTaskID string
	BatchID         string
	From, To        time.Time // run_at in [From, To)
	Cursor          string    // from the page before
	Limit           int       // 1 to 1000
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

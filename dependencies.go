package dts

import "time"

// Limits of dependencies.
const (
	MaxDependencies     = 10_000  // that one request adds to one task
	MaxBulkDependencies = 100_000 // that the tasks of one bulk request have together
	MaxAncestors        = 200_000 // tasks that one depends on, directly or not, when a dependency is added
	MaxGraph            = 1000    // tasks of a graph
)

// DependencyType is what a task asks of another one before it may start.
type DependencyType string

const (
	MustSucceed DependencyType = "MUST_SUCCEED" // it ends as SUCCESS (the default)
	MustFinish  DependencyType = "MUST_FINISH"  // it ends, however
	MustFail    DependencyType = "MUST_FAIL"    // it ends as FAILED
)

// DependencyMode says how many of its dependencies a task needs.
type DependencyMode string

const (
	DependsAll DependencyMode = "ALL" // every one (the default)
	DependsAny DependencyMode = "ANY" // one; the others may fail or still be open
)

// DependencyFailure says what a task becomes whose dependencies cannot be met any more.
type DependencyFailure string

const (
	SkipOnFailure DependencyFailure = "SKIP" // SKIPPED (the default)
	FailOnFailure DependencyFailure = "FAIL" // FAILED
)

// DependsOn is a dependency as a request names it.
type DependsOn struct {
	TaskID string         `json:"task_id,omitempty" doc:"the task that must end first"`
	Ref    string         `json:"ref,omitempty" doc:"in a bulk request, in place of task_id: the ref of a task of the same request"`
	Type   DependencyType `json:"type,omitempty" enum:"MUST_SUCCEED,MUST_FINISH,MUST_FAIL" doc:"default: MUST_SUCCEED"`
}

// DependencyState is what has become of a dependency.
type DependencyState string

const (
	DependencyOpen       DependencyState = "OPEN"
	DependencySatisfied  DependencyState = "SATISFIED"
	DependencyFailed     DependencyState = "FAILED"     // it cannot be met any more
	DependencyOverridden DependencyState = "OVERRIDDEN" // someone let the task run all the same
)

// Dependency is an edge of the graph: Child waits for Parent.
type Dependency struct {
	ChildID  string          `json:"child_id"`
	ParentID string          `json:"parent_id"`
	Type     DependencyType  `json:"type" enum:"MUST_SUCCEED,MUST_FINISH,MUST_FAIL"`
	State    DependencyState `json:"state" enum:"OPEN,SATISFIED,FAILED,OVERRIDDEN"`
}

// Outcome is what the end of its parent in a state makes of a dependency of this type; OPEN for a state that is no end.
func (t DependencyType) Outcome(parent Status) DependencyState {
	met := false
	switch {
	case !parent.Terminal():
		return DependencyOpen
	case t == MustFinish:
		met = true
	case t == MustFail:
		met = parent == Failed
	default:
		met = parent == Success
	}
	if met {
		return DependencySatisfied
	}
	return DependencyFailed
}

// GraphTask is a task in a graph of dependencies.
type GraphTask struct {
	ID          string    `json:"task_id"`
	Name        string    `json:"name,omitempty"`
	Status      Status    `json:"status,omitempty" doc:"absent when the task has been deleted since"`
	SkipReason  Reason    `json:"skip_reason,omitempty"`
	LastError   string    `json:"last_error,omitempty"`
	DueAt       time.Time `json:"due_at,omitzero"`
	CompletedAt time.Time `json:"completed_at,omitzero"`
	Unresolved  int       `json:"unresolved_dependencies_count"`
}

// Graph is what a task depends on, and what depends on it, directly or not, nearest first.
type Graph struct {
	Tasks        []GraphTask  `json:"tasks" doc:"the task that was asked about is the first"`
	Dependencies []Dependency `json:"dependencies"`
	Truncated    bool         `json:"truncated,omitempty" doc:"there is more than 1000 tasks"`
}

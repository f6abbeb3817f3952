package dts

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
)

// StepID is the id of a step of a run: always the same, so that who creates the steps twice creates them once. It sorts
// after that of the run, and near it.
func StepID(run, step string) string {
	sum := sha256.Sum256([]byte(run + "\x00" + step))
	b := [16]byte(sum[:16])
	if ms, err := hex.DecodeString(strings.ReplaceAll(run, "-", "")); err == nil && len(ms) == 16 {
		at := binary.BigEndian.Uint64(ms)>>16 + 1
		low := binary.BigEndian.Uint16(b[6:8])
		binary.BigEndian.PutUint64(b[:8], at<<16|uint64(low))
	}
	return formatID(b)
}

// StepTasks makes the tasks of a run's steps, in the order of the workflow. They are where the run is: on its shard.
func (t *Task) StepTasks(now time.Time) ([]*Task, error) {
	w, err := t.Workflow()
	if err != nil {
		return nil, Errorf(ErrInvalid, "its target_config cannot be read: %w", err)
	}
	list := make([]*Task, len(w.Steps))
	for i := range w.Steps {
		step := &w.Steps[i]
		n := &Task{ID: StepID(t.ID, step.Name), TenantID: t.TenantID, Spec: step.Spec, CreatedBy: t.CreatedBy, TracingID: t.TracingID,
			WorkflowID: t.ID, Step: step.Name, Inputs: step.Inputs, DependsMode: step.DependsMode, OnDependencyFailure: step.OnDependencyFailure}
		n.inherit(&t.Spec)
		for _, d := range step.DependsOn {
			n.DependsOn = append(n.DependsOn, DependsOn{TaskID: StepID(t.ID, d.Step), Type: d.Type})
		}
		if err := n.Normalize(now); err != nil {
			return nil, Errorf(ErrInvalid, "the step %s: %w", step.Name, err)
		}
		n.Shard = t.Shard
		list[i] = n
	}
	return list, nil
}

// RunState is the run of a workflow and what has become of its steps.
type RunState struct {
	Run   *Task       `json:"run"`
	Steps []StepState `json:"steps" doc:"in the order of the workflow"`
}

// StepState is a step of a run.
type StepState struct {
	Name        string          `json:"name"`
	TaskID      string          `json:"task_id,omitempty" doc:"absent until the run has started, and when it was deleted"`
	Status      Status          `json:"status,omitempty" enum:"PENDING,RUNNING,SUCCESS,FAILED,CANCELLED,SKIPPED" doc:"absent where task_id is"`
	DependsOn   []StepDependsOn `json:"depends_on,omitempty"`
	Unresolved  int             `json:"unresolved_dependencies_count,omitempty" doc:"dependencies that are still open"`
	Attempts    int             `json:"attempts,omitempty"`
	SkipReason  Reason          `json:"skip_reason,omitempty"`
	WaitsFor    Reason          `json:"waits_for,omitempty"`
	LastError   string          `json:"last_error,omitempty"`
	StartedAt   time.Time       `json:"started_at,omitzero"`
	CompletedAt time.Time       `json:"completed_at,omitzero"`
}

// RunState puts a run together with the tasks of its steps; none before it has started.
func (t *Task) RunState(steps []*Task) (*RunState, error) {
	w, err := t.Workflow()
	if err != nil {
		return nil, Errorf(ErrConflict, "the workflow of the run %s cannot be read: %w", t.ID, err)
	}
	byName := make(map[string]*Task, len(steps))
	for _, s := range steps {
		byName[s.Step] = s
	}
	r := &RunState{Run: t, Steps: make([]StepState, len(w.Steps))}
	for i := range w.Steps {
		d := &w.Steps[i]
		r.Steps[i] = StepState{Name: d.Name, DependsOn: d.DependsOn}
		if s := byName[d.Name]; s != nil {
			r.Steps[i] = StepState{Name: d.Name, TaskID: s.ID, Status: s.Status, DependsOn: d.DependsOn, Unresolved: s.Unresolved, Attempts: s.Attempts,
				SkipReason: s.SkipReason, WaitsFor: s.WaitsFor, LastError: s.LastError, StartedAt: s.StartedAt, CompletedAt: s.CompletedAt}
		}
	}
	return r, nil
}

// RunProgress is how far a run of a workflow is: of how many steps, how many have ended, and what failed. Zero for a run that
// has not started.
type RunProgress struct {
	Steps, Ended, Running, Failed int
	FailedStep                    string // the name of one that failed
}

package dts

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of workflows.
const (
	MaxSteps     = 1000
	MaxStepEdges = 10_000 // dependencies of the steps of one workflow, together
)

// Workflow is a set of steps that depend on each other. A run of it is a task whose target is the workflow: it starts its
// steps, which are tasks of their own, and ends when the last of them has ended.
type Workflow struct {
	Name        string            `json:"name" doc:"for people; not unique"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty" doc:"of the run; at most 32, to filter by"`
	Queue       string            `json:"queue,omitempty" doc:"of the steps that name none; default: default"`
	Priority    Priority          `json:"priority,omitempty" enum:"HIGH,MEDIUM,LOW" doc:"of the steps that name none; default: MEDIUM"`
	SLASeconds  float64           `json:"sla_seconds,omitempty" doc:"sla_met: the run starts within this of due_at; default 30"`

	WarnLateSeconds float64 `json:"warn_late_seconds,omitempty" doc:"warn when the run starts this much after it was due"`

	Steps []Step `json:"steps" doc:"1 to 1000"`
}

// WorkflowTarget is the target_config of WORKFLOW.
type WorkflowTarget struct {
	Steps []Step `json:"steps" doc:"1 to 1000, each with a name of its own"`
}

// Step is one task of a workflow: what to run, and after which other steps.
type Step struct {
	Spec
	DependsOn           []StepDependsOn   `json:"depends_on,omitempty" doc:"steps that must end first: their names, or objects"`
	DependsMode         DependencyMode    `json:"depends_mode,omitempty" enum:"ALL,ANY" doc:"how many of them it needs; default: ALL"`
	OnDependencyFailure DependencyFailure `json:"on_dependency_failure,omitempty" enum:"SKIP,FAIL" doc:"what it becomes when they cannot be met any more; default: SKIP"`
	Inputs              []string          `json:"inputs,omitempty" doc:"steps before it whose output it gets"`
}

// StepDependsOn is a dependency on another step of the same workflow. In JSON it can be just the step's name.
type StepDependsOn struct {
	Step string         `json:"step" doc:"name of the step that must end first"`
	Type DependencyType `json:"type,omitempty" enum:"MUST_SUCCEED,MUST_FINISH,MUST_FAIL" doc:"default: MUST_SUCCEED"`
}

// UnmarshalJSON reads a name or an object.
func (d *StepDependsOn) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte(`"`)) {
		*d = StepDependsOn{}
		return json.Unmarshal(b, &d.Step)
	}
	type plain StepDependsOn
	if err := decodeStrict(b, (*plain)(d)); err != nil {
		return errors.New("depends_on must be names of steps, or objects with step and type: " + err.Error())
	}
	return nil
}

// MarshalJSON writes just the name where the type is the default.
func (d StepDependsOn) MarshalJSON() ([]byte, error) {
	if d.Type == "" || d.Type == MustSucceed {
		return json.Marshal(d.Step)
	}
	type plain StepDependsOn
	return json.Marshal(plain(d))
}

// Normalize checks a workflow and all of its steps. What its steps leave out is filled in when they start. Its error names
// the fields as steps[2].target_config.url.
func (w *Workflow) Normalize() error {
	s := w.Spec()
	err := s.Normalize()
	var e *Error
	if errors.As(err, &e) {
		for i := range e.Fields {
			e.Fields[i].Field = strings.TrimPrefix(e.Fields[i].Field, "target_config.")
		}
	}
	return err
}

// Spec is what a run of the workflow is, as a task or as the template of a recurring task.
func (w *Workflow) Spec() Spec {
	config, err := json.Marshal(WorkflowTarget{Steps: w.Steps})
	if err != nil {
		config = nil // a RawMessage that is no JSON: Normalize says that it is missing
	}
	return Spec{Name: w.Name, Description: w.Description, Labels: w.Labels, Queue: w.Queue, Priority: w.Priority, SLASeconds: w.SLASeconds,
		WarnLateSeconds: w.WarnLateSeconds, TargetType: WorkflowRun, TargetConfig: config}
}

// Workflow decodes the target_config of a WORKFLOW that Normalize has accepted.
func (s *Spec) Workflow() (WorkflowTarget, error) {
	var t WorkflowTarget
	err := json.Unmarshal(s.TargetConfig, &t)
	return t, err
}

// IsRun reports whether a task is the run of a workflow.
func (t *Task) IsRun() bool { return t.TargetType == WorkflowRun }

// RunStarted reports whether a task is the run of a workflow, and its steps have been created.
func (t *Task) RunStarted() bool { return t.IsRun() && t.Attempts > 0 }

// StepsDone returns how many of its steps a run that goes on need not wait for any more, and how many it has.
func (t *Task) StepsDone() (done, all int) {
	w, err := t.Workflow()
	if err != nil {
		return 0, t.Unresolved // it cannot be read: those are left
	}
	return max(len(w.Steps)-t.Unresolved, 0), len(w.Steps)
}

// isStepName: 1 to 100 letters, digits, '_', '-' and '.'. As a regular expression it would take every start of the program 5 ms.
func isStepName(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_-.", r) || r == utf8.RuneError
	})
}

// checkWorkflow checks the target_config of a WORKFLOW.
func checkWorkflow(f *fieldErrors, s *Spec) {
	var t WorkflowTarget
	if err := decodeStrict(s.TargetConfig, &t); err != nil {
		f.add("target_config", "is not a valid WORKFLOW: %s", err)
		return
	}
	for _, x := range [...]struct {
		field string
		set   bool
	}{
		{"delivery", s.Delivery == AtMostOnce}, {"retry", s.Retry.MaxAttempts > 1 && !s.RetryDefault},
		{"concurrency_key", s.ConcurrencyKey != ""}, {"preemptible", s.Preemptible}, {"resources", s.Resources != nil},
		{"warn_longer_seconds", s.WarnLongerSeconds != 0}, {"warn_shorter_seconds", s.WarnShorterSeconds != 0},
	} {
		if x.set {
			f.add(x.field, "is for the steps of a workflow; set it there")
		}
	}
	s.Retry, s.RetryDefault = Retry{MaxAttempts: 1}, false // a run itself makes no attempts that could fail
	s.Retry.normalize(f, AtLeastOnce)
	const at = "target_config.steps"
	switch {
	case len(t.Steps) == 0:
		f.add(at, "is missing; a workflow has 1 to %d steps", MaxSteps)
		return
	case len(t.Steps) > MaxSteps:
		f.add(at, "has %d entries; at most %d are allowed", len(t.Steps), MaxSteps)
		return
	}
	index := make(map[string]int, len(t.Steps))
	for i := range t.Steps {
		step := &t.Steps[i]
		switch field := stepField(at, i, "name"); {
		case step.Name == "":
			f.add(field, "is missing; the other steps and the lists name it by that")
		case !isStepName(step.Name):
			f.add(field, "%q is not a name of a step; use 1 to 100 letters, digits, '_', '-' and '.'", clip(step.Name))
		default:
			if first, twice := index[step.Name]; twice {
				f.add(field, "%q is there twice, as steps[%d] too; give each step its own", clip(step.Name), first)
			} else {
				index[step.Name] = i
			}
		}
		checkStep(f, at, i, step, s)
	}
	if checkStepEdges(f, at, t.Steps, index) {
		checkInputsOfSteps(f, at, t.Steps, index)
	}
}

func stepField(at string, i int, field string) string {
	return at + "[" + strconv.Itoa(i) + "]." + field
}

// checkStep checks what a step runs, with what it inherits.
func checkStep(f *fieldErrors, at string, i int, step *Step, run *Spec) {
	spec := step.Spec
	if spec.TargetType == WorkflowRun {
		f.add(stepField(at, i, "target_type"), "is WORKFLOW; a step cannot be a workflow itself")
		return
	}
	if spec.TargetType == Ping {
		f.add(stepField(at, i, "target_type"), onlyRecurringPing)
		return
	}
	spec.inherit(run)
	f.merge(stepField(at, i, ""), spec.Normalize())
	checkInputs(f, stepField(at, i, ""), &spec, step.Inputs)
	switch step.DependsMode {
	case "", DependsAll, DependsAny:
	default:
		f.add(stepField(at, i, "depends_mode"), "%q is not known; use ALL or ANY", clip(string(step.DependsMode)))
	}
	switch step.OnDependencyFailure {
	case "", SkipOnFailure, FailOnFailure:
	default:
		f.add(stepField(at, i, "on_dependency_failure"), "%q is not known; use SKIP or FAIL", clip(string(step.OnDependencyFailure)))
	}
}

// inherit fills in what a step has from its run.
func (s *Spec) inherit(run *Spec) {
	if s.Queue == "" {
		s.Queue = run.Queue
	}
	if s.Priority == "" {
		s.Priority = run.Priority
	}
}

// checkStepEdges checks what steps depend on, and reports whether all of it is there and nothing goes round.
func checkStepEdges(f *fieldErrors, at string, steps []Step, index map[string]int) bool {
	before, edges := len(f.list), 0
	for i := range steps {
		seen := map[string]bool{}
		for j, d := range steps[i].DependsOn {
			field := stepField(at, i, "depends_on["+strconv.Itoa(j)+"]")
			switch d.Type {
			case "", MustSucceed, MustFinish, MustFail:
			default:
				f.add(field, "has the type %q; use MUST_SUCCEED, MUST_FINISH or MUST_FAIL", clip(string(d.Type)))
			}
			if _, is := index[d.Step]; !is {
				f.add(field, "%s", noStep(d.Step))
			} else if seen[d.Step] {
				f.add(field, "%q is there twice; a step has one dependency on another", clip(d.Step))
			}
			seen[d.Step] = true
		}
		edges += len(steps[i].DependsOn)
	}
	if edges > MaxStepEdges {
		f.add(at, "depend %d times on each other; at most %d are allowed", edges, MaxStepEdges)
	}
	if len(f.list) > before {
		return false
	}
	if path := stepCycle(steps, index); path != nil {
		const shown = 20
		if len(path) > shown {
			path = slices.Concat(path[:shown/2], []string{"…"}, path[len(path)-shown/2:])
		}
		f.add(at, "go round, so that every step waits for the next: %s", strings.Join(path, " → "))
		return false
	}
	return true
}

func noStep(name string) string {
	if name == "" {
		return "names no step"
	}
	return strconv.Quote(clip(name)) + " is not a step of this workflow"
}

// stepCycle returns a circle of steps, by name and with the first one at its end again: each before those that wait for it.
// nil: there is none.
func stepCycle(steps []Step, index map[string]int) []string {
	const open, done = 1, 2
	state := make([]int, len(steps))
	var way []int // from a step through what it depends on
	var walk func(i int) []string
	walk = func(i int) []string {
		state[i] = open
		way = append(way, i)
		for _, d := range steps[i].DependsOn {
			switch p := index[d.Step]; state[p] {
			case open:
				round := append(slices.Clone(way[slices.Index(way, p):]), p)
				slices.Reverse(round)
				names := make([]string, len(round))
				for k, at := range round {
					names[k] = steps[at].Name
				}
				return names
			case done:
			default:
				if names := walk(p); names != nil {
					return names
				}
			}
		}
		state[i] = done
		way = way[:len(way)-1]
		return nil
	}
	for i := range steps {
		if state[i] == 0 {
			if names := walk(i); names != nil {
				return names
			}
		}
	}
	return nil
}

// checkInputsOfSteps checks that a step's inputs end before it.
func checkInputsOfSteps(f *fieldErrors, at string, steps []Step, index map[string]int) {
	for i := range steps {
		if len(steps[i].Inputs) == 0 {
			continue
		}
		before, next := map[string]bool{}, []int{i}
		for len(next) > 0 {
			k := next[len(next)-1]
			next = next[:len(next)-1]
			for _, d := range steps[k].DependsOn {
				if !before[d.Step] {
					before[d.Step] = true
					next = append(next, index[d.Step])
				}
			}
		}
		for j, name := range steps[i].Inputs {
			field := stepField(at, i, "inputs["+strconv.Itoa(j)+"]")
			if _, is := index[name]; !is {
				f.add(field, "%s", noStep(name))
			} else if !before[name] {
				f.add(field, "the step %q does not end before this one starts; add it to depends_on", clip(name))
			}
		}
	}
}

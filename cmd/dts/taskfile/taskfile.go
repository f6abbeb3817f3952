// Package taskfile reads the files that declare tasks, workflows, queues and calendars for `dts apply`, `dts ci` and `dts check`.
//
// Parse promises to find all that can be known to be wrong without a server, each with its line and column; never to read
// anything but the bytes that it is given; and to take time and memory in proportion to MaxBytes, however often a file repeats a
// part of itself by its aliases. What has no problem is complete: targets are written out, names of dependencies are those of
// other tasks, there is no circle among them, and each schedule can be planned.
//
//	f, problems := taskfile.Parse("tasks.yaml", src, time.Now())
//	if len(problems) > 0 {
//		// Print each: tasks.yaml:3:5: "comand" is not known; did you mean command?
//	}
//	for _, t := range f.Tasks {
//		// t.Spec says what to run; t.DependsOn which of f.Tasks come first, by index and by name.
//		// t.Recurring or t.Once says when; both are nil where the file does not.
//	}
//
// Schema is the same form as a JSON Schema, for editors. Encode writes it.
package taskfile

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"dts"
	"dts/web/api"
)

// Limits of a file.
const (
	MaxBytes    = 4 << 20
	MaxTasks    = dts.MaxBulk  // and as many workflows
	MaxSteps    = dts.MaxSteps // of a workflow
	MaxProblems = 100          // that are told
)

// Label marks what `dts apply` keeps as a file says: its value is the file's name.
const Label = "dts.file"

// Pos is where something stands in a file, counted from 1; columns are characters. The zero Pos is nowhere.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Problem is something that is wrong with a file.
type Problem struct {
	File string `json:"-"`
	Pos
	Message string `json:"message"`
}

// String is the problem as compilers write them: file:line:column: message.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// File is what a file declares, each list in the order of the file.
type File struct {
	Path string // as it was given to Parse
	// Name is its `name`, else that of the file without directory and extension; "" where that is no usable name.
	Name      string
	Queues    []*Queue
	Calendars []*Calendar
	Tasks     []*Task
	Workflows []*Workflow
}

// Queue is the settings that a queue is to have.
type Queue struct {
	Pos
	Name    string
	Request api.QueueRequest
}

// Calendar is a calendar that is to exist.
type Calendar struct {
	Pos
	Name    string
	Request api.CalendarRequest
}

// Task is a task of the file, or a step of a workflow.
type Task struct {
	Pos
	// Spec says what to run and how. Like a request it leaves out what is left to the server; its target_config is complete.
	dts.Spec
	// DependsOn are tasks of the same list. Only a task without a schedule has them, and steps.
	DependsOn           []Dependency
	DependsMode         dts.DependencyMode
	OnDependencyFailure dts.DependencyFailure
	Inputs              []string // names of those whose output it reads

	Recurring *api.RecurringRequest // cron, every, rrule: the task again, with its schedule. Else nil
	Once      *api.TaskRequest      // at: the task again, with its time. Else nil
}

// Scheduled reports whether the file says when it runs.
func (t *Task) Scheduled() bool { return t.Recurring != nil || t.Once != nil }

// Dependency is another task of the same list that must end first.
type Dependency struct {
	Pos
	Index int // in File.Tasks or Workflow.Steps
	Name  string
	Type  dts.DependencyType // never empty
}

// Workflow is several tasks that are run as one.
type Workflow struct {
	Pos
	dts.Spec                        // of a run: its target is WORKFLOW, with the steps
	Steps     []*Task               // the steps again, without schedules
	Recurring *api.RecurringRequest // cron, every, rrule: the workflow again, with its schedule. Else nil
}

// usableName is what a file can be called: it becomes the value of a label, and an argument.
var usableName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?$`)

// Parse reads a file that is called path, YAML or JSON. Times without a date or an offset are not allowed in it, so now matters
// only for how far ahead a time may be. Where there are problems the File has what could be read, and is not to be used.
func Parse(path string, src []byte, now time.Time) (*File, []Problem) {
	f := &File{Path: path, Name: NameOf(path)}
	r := &reader{file: path, marks: map[string]mark{}, now: now}
	if len(src) > MaxBytes {
		r.add(Pos{}, "is %d bytes long; at most %d are read", len(src), MaxBytes)
		return f, r.problems
	}
	var docs []yaml.Node
	if err := yaml.Load(src, &docs, yaml.WithAllDocuments(), yaml.WithUniqueKeys(false)); err != nil {
		r.syntax(src, err)
		return f, r.problems
	}
	switch {
	case len(docs) == 0 || len(docs[0].Content) == 0 || isNull(docs[0].Content[0]):
		r.add(Pos{}, "is empty; it should have tasks or workflows")
	case len(docs) > 1:
		r.add(posOf(&docs[1]), "a second document begins here; put all into one, or into two files")
	default:
		r.document(docs[0].Content[0], f)
	}
	slices.SortFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Message, b.Message))
	})
	return f, slices.Compact(r.problems) // what an alias repeats is wrong once
}

// NameOf is what a file is called that does not say it: its path without directory and extension, or "" where that is not usable.
func NameOf(file string) string {
	name := path.Base(strings.ReplaceAll(file, `\`, "/"))
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		name = strings.TrimSuffix(name, ext)
	}
	if !usableName.MatchString(name) {
		return ""
	}
	return name
}

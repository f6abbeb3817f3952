package taskfile

import (
	"reflect"

	"dts"
	"dts/web/api"
)

// The forms are the mappings of a file. What the API has too comes from its types, so that it is known here under the same
// name at once.
type (
	fileForm struct {
		Schema    string                      `json:"$schema" doc:"for editors: where this schema is"`
		Name      string                      `json:"name" doc:"what dts apply marks with the label dts.file; default: the file's name without its extension"`
		Defaults  defaultsForm                `json:"defaults" doc:"of every task and step of this file"`
		Queues    map[string]api.QueueRequest `json:"queues" doc:"settings of queues, by name"`
		Calendars map[string]calendarForm     `json:"calendars" doc:"calendars, by name"`
		Tasks     []taskForm                  `json:"tasks"`
		Workflows []workflowForm              `json:"workflows" doc:"several tasks that are run as one"`
	}

	// defaultsForm is a task's fields without those that only one can have.
	defaultsForm struct {
		taskForm
	}

	calendarForm struct {
		api.CalendarRequest
	}

	taskForm struct {
		api.RecurringRequest
		RunAt     api.TimeText `json:"run_at" doc:"when to run, once; without an offset it is local time in time_zone"`
		ExpiresAt api.TimeText `json:"expires_at" doc:"of a task that runs once: do not start it after this"`
		targetForm
		dependsForm
	}

	stepForm struct {
		dts.Spec
		targetForm
		dependsForm
	}

	workflowForm struct {
		api.RecurringRequest
		Steps []stepForm `json:"steps" doc:"1 to 1000"`
	}

	// targetForm is what to run, without the type of the target around it.
	targetForm struct {
		Command   commandLine       `json:"command" doc:"a program and its arguments as a list, or a line for the shell"`
		ShellPath string            `json:"shell_path" doc:"the shell of a line, called with -c; default: /bin/sh"`
		Env       map[string]string `json:"env" doc:"of a command: added to a minimal environment"`
		Dir       string            `json:"dir" doc:"of a command: its working directory, absolute; default: the user's home"`
		User      string            `json:"user" doc:"of a command: run as this user; only a server that runs as root can"`
		Stdin     string            `json:"stdin" doc:"of a command: its standard input"`

		URL          string            `json:"url" doc:"call it, in place of a command: http or https"`
		Method       string            `json:"method" enum:"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS" doc:"of a call; default: POST"`
		Headers      map[string]string `json:"headers" doc:"of a call"`
		Body         string            `json:"body" doc:"of a call"`
		ExpectStatus []int             `json:"expect_status" doc:"of a call: statuses that count as success; default: 200-299"`
		ExpectBody   string            `json:"expect_body" doc:"of a call: text that the answer must contain"`
	}

	// dependsForm is what a task waits for.
	dependsForm struct {
		DependsOn           []dependency          `json:"depends_on" doc:"names of tasks of this list that must end first"`
		DependsMode         dts.DependencyMode    `json:"depends_mode" enum:"ALL,ANY" doc:"how many of them it needs; default: ALL"`
		OnDependencyFailure dts.DependencyFailure `json:"on_dependency_failure" enum:"SKIP,FAIL" doc:"what it becomes when they cannot be met any more; default: SKIP"`
		Inputs              []string              `json:"inputs" doc:"names of those of them whose output it reads"`
	}

	// dependencyForm is a dependency that says more than a name.
	dependencyForm struct {
		Task string             `json:"task" doc:"its name"`
		Step string             `json:"step" doc:"its name, in a workflow"`
		Type dts.DependencyType `json:"type" enum:"MUST_SUCCEED,MUST_FINISH,MUST_FAIL" doc:"default: MUST_SUCCEED"`
	}

	// dependency is a dependencyForm, or a name alone.
	dependency struct {
		Pos
		dependencyForm
	}

	// commandLine is a program with its arguments, or a line for the shell.
	commandLine struct {
		argv  []string
		shell string
	}
)

// once and calls are the keys that no default can be given for, and those of the two kinds of targets.
var (
	once = []string{"name", "description", "target_type", "target_config", "command", "url", "body", "stdin", "cron", "interval_seconds",
		"rrule", "run_at", "expires_at", "start_time", "end_time", "max_runs", "depends_on", "depends_mode", "on_dependency_failure", "inputs"}
	commandKeys = []string{"shell_path", "env", "dir", "user", "stdin"}
	callKeys    = []string{"method", "headers", "body", "expect_status", "expect_body"}
)

// hidden reports whether a form does not have a field of the struct that it is made of.
func hidden(t reflect.Type, name string) bool {
	switch t {
	case reflect.TypeFor[taskForm]():
		return name == "idempotency_key"
	case reflect.TypeFor[defaultsForm]():
		return name == "idempotency_key" || contains(once, name)
	case reflect.TypeFor[calendarForm]():
		return name == "name"
	case reflect.TypeFor[workflowForm]():
		switch name {
		case "idempotency_key", "target_type", "target_config", "retry", "delivery", "timeout_seconds", "preemptible", "resources",
			"concurrency_key", "concurrency_limit", "warn_longer_seconds", "warn_shorter_seconds":
			return true
		}
	}
	return false
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

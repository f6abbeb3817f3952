package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dts"
	"dts/web/auth"
)

// form is what was entered, as text, so that it can be shown again just as it was.
type form struct {
	Key                        string // idempotency key: sending the form twice adds one task
	Name, Description          string
	Kind                       string // a dts.TargetType
	Shell, Dir                 string
	Method, URL, Headers, Body string
	Grace, MaxRuntime          string // of a PING
	Steps                      string // of a workflow, in JSON
	Timeout, Attempts          string
	timing
	life
}

// Kinds are what a task can run, or, of the third, what it waits for.
func (form) Kinds() []choice {
	return []choice{{string(dts.Command), "A command"}, {string(dts.HTTPCallback), "An HTTP request"},
		{string(dts.Ping), "A job elsewhere, which reports"}, {string(dts.WorkflowRun), "A workflow"}}
}

// Chosen is the kind that is chosen: the first of them unless another one is.
func (f form) Chosen() string {
	for _, k := range f.Kinds() {
		if k.Key == f.Kind {
			return k.Key
		}
	}
	return string(dts.Command)
}

// StepsExample is what the form shows where no steps have been entered.
func (form) StepsExample() string {
	return `[
  {"name": "dump", "target_type": "COMMAND",
   "target_config": {"shell": "./dump.sh"}},
  {"name": "upload", "target_type": "COMMAND",
   "target_config": {"shell": "./upload.sh"},
   "depends_on": ["dump"]}
]`
}

// Methods are those that the form offers.
func (form) Methods() []string { return []string{"POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"} }

func readForm(v url.Values) form {
	one := func(k string) string { return strings.TrimSpace(v.Get(k)) }
	return form{
		Key: one("key"), Name: one("name"), Description: one("description"),
		Kind: one("kind"), Shell: lines(one("shell")), Dir: one("dir"),
		Grace: one("grace"), MaxRuntime: one("max_runtime"), Steps: lines(one("steps")),
		Method: one("method"), URL: one("url"), Headers: v.Get("headers"), Body: v.Get("body"),
		Timeout: one("timeout"), Attempts: one("attempts"),
		timing: readTiming(v), life: readLife(v),
	}
}

// lines are a text with the line ends of Unix; a browser sends those of HTTP.
func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// formErrors are the messages beside the fields, by the name of the input. "" is for the form as a whole.
type formErrors map[string]string

func (e formErrors) add(input, message string) {
	if e[input] == "" {
		e[input] = message
	}
}

// inputs maps the field names of dts to the inputs of the form.
var inputs = map[string]string{
	"name": "name", "description": "description",
	"target_config.url": "url", "target_config.method": "method", "target_config.headers": "headers",
	"target_config.dir": "dir", "target_config.grace_seconds": "grace", "target_config.max_runtime_seconds": "max_runtime",
	"timeout_seconds": "timeout", "retry.max_attempts": "attempts",
	"cron": "cron", "interval_seconds": "every", "rrule": "rule", "run_at": "at", "time_zone": "zone",
	"dst_gap": "gap", "dst_overlap": "twice", "start_time": "start", "end_time": "end", "max_runs": "max_runs",
	"jitter_seconds": "jitter", "exclude_calendars": "exclude", "require_calendars": "require", "calendar_shift": "shift",
	"catch_up_mode": "missed", "misfire_after_seconds": "missed_after", "catch_up_window_seconds": "window",
	"catch_up_limit": "limit", "catch_up_pacing_seconds": "pacing", "overlap_policy": "overlap",
}

// labels are the names of the inputs on the page.
var labels = map[string]string{
	"name": "The name", "description": "The description", "url": "The address", "method": "The method",
	"headers": "The headers", "dir": "The directory", "shell": "The command", "timeout": "The timeout",
	"attempts": "The number of attempts", "body": "The body", "grace": "The time", "max_runtime": "The time",
	"cron": "The expression", "every": "The interval", "rule": "The rule", "at": "The time", "zone": "The time zone",
	"start": "The first time", "end": "The last time", "max_runs": "The number of runs", "jitter": "The spread",
	"exclude": "The list", "require": "The list", "shift": "This",
	"missed_after": "The time", "window": "The time", "limit": "The number of runs", "pacing": "The time between two runs",
}

// merge puts the fields of err beside their inputs. It reports whether err was about fields.
func (e formErrors) merge(f form, err error) bool {
	x, ok := errors.AsType[*dts.Error](err)
	if !ok || len(x.Fields) == 0 {
		return false
	}
	for _, field := range x.Fields {
		name, _, _ := strings.Cut(field.Field, "[")
		input, known := inputs[name]
		if !known {
			input, known = lifeInputs[name]
		}
		label, message := labels[input]+lifeLabels[input], field.Message
		if _, index, isList := strings.Cut(field.Field, "["); isList && input == "after" {
			n, _ := strconv.Atoi(strings.SplitN(index, "]", 2)[0])
			label, message = "", "line "+strconv.Itoa(n+1)+": "+message
		}
		switch {
		case input == "cron" && f.When == whenEvery:
			input = "every" // the expression is hidden; what is missing is the interval
		case input == "cron" && f.When == whenRule:
			input = "rule"
		case known:
		case strings.HasPrefix(field.Field, "target_config") && f.Kind == string(dts.HTTPCallback):
			input = "url"
		case strings.HasPrefix(field.Field, "target_config") && f.Kind == string(dts.WorkflowRun):
			if at := strings.TrimPrefix(strings.TrimPrefix(field.Field, "target_config"), "."); at != "" {
				message = "in " + at + ": " + message
			}
			input = "steps"
		case strings.HasPrefix(field.Field, "target_config"):
			input = "shell"
		default:
			e.add("", sentence(field.Field, field.Message))
			continue
		}
		e.add(input, sentence(label, message))
	}
	return true
}

// spec builds what to run.
func (f form) spec(e formErrors) dts.Spec {
	s := dts.Spec{Name: f.Name, Description: f.Description, TargetType: dts.TargetType(f.Kind)}
	s.Queue, s.Priority = f.Queue, dts.Priority(f.Priority)
	switch s.TargetType {
	case dts.Ping: // dts does not run it, so that nothing is tried again or killed
		s.TargetConfig, _ = json.Marshal(dts.PingTarget{GraceSeconds: e.interval("grace", f.Grace), MaxRuntimeSeconds: e.interval("max_runtime", f.MaxRuntime)})
		return s
	case dts.WorkflowRun: // its steps have these
		s.TargetConfig = f.steps(e)
		return s
	}
	if f.Timeout != "" {
		n, err := strconv.ParseFloat(f.Timeout, 64)
		if err != nil || n <= 0 {
			e.add("timeout", "The timeout must be a number of seconds such as 300")
		}
		s.TimeoutSeconds = n
	}
	s.Retry = f.retry(e)
	var target any
	switch s.TargetType {
	case dts.HTTPCallback:
		target = dts.HTTPTarget{URL: f.URL, Method: f.Method, Headers: f.headers(e), Body: f.Body}
	default:
		s.TargetType = dts.Command
		target = dts.CommandTarget{Shell: f.Shell, Dir: f.Dir}
		if f.Shell == "" {
			e.add("shell", "Enter the command to run")
		}
	}
	s.TargetConfig, _ = json.Marshal(target) // strings and maps of strings always marshal
	return s
}

// rules reads when a recurring task runs. What is not asked about a PING is as it is by itself.
func (f form) rules(e formErrors) dts.RecurringTask {
	if f.Kind == string(dts.Ping) {
		f.Jitter, f.Missed, f.MissedAfter, f.Window, f.Limit, f.Pacing, f.Overlap = "", "", "", "", "", "", ""
	}
	return f.timing.rules(e)
}

// steps reads the steps of a workflow: a list in JSON, or an object that has it as "steps". What is in them is checked with the rest.
func (f form) steps(e formErrors) json.RawMessage {
	raw := json.RawMessage(f.Steps)
	if err := json.Unmarshal(raw, new(any)); f.Steps == "" {
		e.add("steps", "Enter the steps")
	} else if err != nil {
		e.add("steps", jsonError(f.Steps, err))
	}
	if len(e) > 0 {
		return json.RawMessage(`{"steps":[]}`)
	}
	if f.Steps[0] == '[' {
		raw = slices.Concat(json.RawMessage(`{"steps":`), raw, json.RawMessage(`}`))
	}
	return raw
}

// jsonError says where a text stops being JSON.
func jsonError(text string, err error) string {
	x, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return sentence("", "this is not JSON: "+err.Error())
	}
	before := text[:min(max(int(x.Offset)-1, 0), len(text))]
	return "Line " + strconv.Itoa(strings.Count(before, "\n")+1) + " is not JSON: " + x.Error()
}

// headers reads one "Name: value" a line.
func (f form) headers(e formErrors) map[string]string {
	var m map[string]string
	for line := range strings.Lines(f.Headers) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			e.add("headers", "Write each header on its own line as Name: value")
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return m
}

// hash tells apart two forms with one key: sent again just as it was, a form adds nothing; changed, it is
// refused.
func (f form) hash() string {
	b, _ := json.Marshal(f) // strings always marshal
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

type newPage struct {
	shared
	form
	Errors    formErrors
	Preview   previewView
	Fresh     bool     // nothing has been entered yet
	Calendars []string // names, to choose from
}

// field is one input with its message, for the template.
type field struct {
	ID, Value, Error string
}

func newField(e formErrors, id, value string) field { return field{id, value, e[id]} }

// textField is an input for a line of text.
type textField struct {
	field
	Kind        string // "datetime-local", "numeric", "decimal", "interval", "name", "key" or "list"
	Label, Hint string
}

// kind says what a field is for.
func kind(kind, label, hint string, f field) textField { return textField{f, kind, label, hint} }

// choiceField is an input to choose one of a list with.
type choiceField struct {
	field
	Label   string
	Choices []choice
}

func newChoices(e formErrors, id, value, label string, list []choice) choiceField {
	return choiceField{newField(e, id, value), label, list}
}

// namesField is an input to choose any of a list of names with.
type namesField struct {
	field
	Label string
	Names []nameChoice
}

type nameChoice struct {
	Text   string
	Chosen bool
}

func newNames(e formErrors, id, label string, names, chosen []string) namesField {
	f := namesField{field: newField(e, id, ""), Label: label}
	for _, n := range names {
		f.Names = append(f.Names, nameChoice{n, slices.Contains(chosen, n)})
	}
	return f
}

// newPage shows the empty form.
func (h *handler) newPage(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	f := form{Key: dts.NewID(h.now()), Kind: string(dts.Command), Method: "POST", timing: timing{When: whenCron}}
	q := r.URL.Query()
	if q.Get("when") == whenOnce {
		f.When = whenOnce
	}
	if id := q.Get("after"); dts.IsID(id) {
		f.When, f.After = whenOnce, id
	}
	d := newPage{shared: h.shared(r, "new"), form: f, Preview: h.previewOf(r, p, f), Fresh: true, Calendars: h.calendarNames(r, p, f)}
	return h.render(w, http.StatusOK, "new", d)
}

// calendarNames are the calendars that the form offers: the tenant's, and those that were chosen. That they
// cannot be read now must not cost what was entered.
func (h *handler) calendarNames(r *http.Request, p auth.Principal, f form) []string {
	names := slices.Concat(f.Exclude, f.Require)
	list, err := h.Store.Calendars(r.Context(), p.TenantID)
	if err != nil {
		h.explain(r, err)
	}
	for _, c := range list {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// create saves the form, or shows it again with the messages. A browser without JavaScript asks for the
// preview here too.
func (h *handler) create(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	f := readForm(r.PostForm)
	d := newPage{shared: h.shared(r, "new"), form: f, Errors: formErrors{}, Preview: h.previewOf(r, p, f), Calendars: h.calendarNames(r, p, f)}
	if r.PostForm.Get("do") == "preview" {
		if !d.Preview.Empty {
			d.Errors = d.Preview.errors
		}
		return h.render(w, http.StatusOK, "new", d)
	}
	to, existed, err := h.save(r, p, f, &d)
	switch {
	case len(d.Errors) > 0:
		return h.render(w, http.StatusUnprocessableEntity, "new", d)
	case dts.CodeOf(err) == dts.ErrConflict && strings.Contains(err.Error(), "dedupe_key"):
		d.Errors.add("dedupe", sentence("", err.Error()))
		return h.render(w, http.StatusConflict, "new", d)
	case dts.CodeOf(err) == dts.ErrConflict:
		// The reader went back to a form that had been saved, and changed it: with a new key it is a new task.
		d.Key = dts.NewID(d.Now)
		d.Errors.add("", "This form was saved once already. Save again to add another task.")
		return h.render(w, http.StatusConflict, "new", d)
	case err != nil:
		status, message := h.explain(r, err)
		d.Errors.add("", sentence("", message))
		return h.render(w, status, "new", d)
	}
	done := "added"
	if existed {
		done = "existed"
	}
	http.Redirect(w, r, withQuery(to, "done", done), http.StatusSeeOther)
	return nil
}

// save adds the task or the recurring task and returns the address of its page. What is wrong with a field
// goes into the page's errors; the preview has found what is wrong with the times.
func (h *handler) save(r *http.Request, p auth.Principal, f form, d *newPage) (to string, existed bool, err error) {
	e := d.Errors
	if f.recurring() {
		rt := f.rules(e)
		maps.Copy(e, d.Preview.errors)
		rt.TenantID, rt.Spec, rt.CreatedBy, rt.IdempotencyKey, rt.RequestHash = p.TenantID, f.spec(e), p.Name, f.Key, f.hash()
		e.merge(f, rt.Normalize())
		if len(e) > 0 {
			return "", false, nil
		}
		c, err := h.Scheduler.CreateRecurring(r.Context(), &rt)
		if err != nil {
			e.merge(f, err)
			return "", false, err
		}
		return "/ui/recurring/" + c.Item.ID, c.Existed, nil
	}
	if f.Kind == string(dts.Ping) {
		e.add("kind", "A report of a job is expected on a schedule: choose one, not “Once”")
		return "", false, nil
	}
	t := &dts.Task{TenantID: p.TenantID, Spec: f.spec(e), RunAt: f.runAt(e, d.Now), CreatedBy: p.Name,
		IdempotencyKey: f.Key, RequestHash: f.hash()}
	f.once(t, e)
	e.merge(f, t.Normalize(d.Now))
	if len(e) > 0 {
		return "", false, nil
	}
	list, err := h.Scheduler.CreateTasks(r.Context(), []*dts.Task{t})
	if err != nil {
		e.merge(f, err)
		return "", false, err
	}
	return "/ui/tasks/" + list[0].Item.ID, list[0].Existed, nil
}

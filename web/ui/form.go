package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
	"dts/web/auth"
)

// What the form calls the three ways to say when.
const (
	whenCron  = "cron"
	whenEvery = "every"
	whenOnce  = "once"
)

// form is what was entered, as text, so that it can be shown again just as it was.
type form struct {
	Key                          string // idempotency key: sending the form twice adds one task
	Name, Description            string
	Kind                         string // a dts.TargetType
	Shell, Dir                   string
	Method, URL, Headers, Body   string
	When                         string
	Cron, Every, At, Zone        string
	Timeout, Attempts, NoOverlap string
}

// Methods are those that the form offers.
func (form) Methods() []string { return []string{"POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"} }

func readForm(v url.Values) form {
	one := func(k string) string { return strings.TrimSpace(v.Get(k)) }
	return form{
		Key: one("key"), Name: one("name"), Description: one("description"),
		Kind: one("kind"), Shell: strings.ReplaceAll(one("shell"), "\r\n", "\n"), Dir: one("dir"),
		Method: one("method"), URL: one("url"), Headers: v.Get("headers"), Body: v.Get("body"),
		When: one("when"), Cron: one("cron"), Every: one("every"), At: one("at"), Zone: one("zone"),
		Timeout: one("timeout"), Attempts: one("attempts"), NoOverlap: one("no_overlap"),
	}
}

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
	"target_config.dir": "dir",
	"cron":              "cron", "interval_seconds": "every", "time_zone": "zone", "run_at": "at",
	"timeout_seconds": "timeout", "retry.max_attempts": "attempts", "overlap_policy": "no_overlap",
}

// labels are the names of the inputs on the page.
var labels = map[string]string{
	"name": "The name", "description": "The description", "url": "The address", "method": "The method",
	"headers": "The headers", "dir": "The directory", "shell": "The command", "cron": "The expression",
	"every": "The interval", "zone": "The time zone", "at": "The time", "timeout": "The timeout",
	"attempts": "The number of attempts", "body": "The body",
}

// merge puts the fields of err beside their inputs. It reports whether err was about fields.
func (e formErrors) merge(f form, err error) bool {
	x, ok := errors.AsType[*dts.Error](err)
	if !ok || len(x.Fields) == 0 {
		return false
	}
	for _, field := range x.Fields {
		input, known := inputs[field.Field]
		switch {
		case input == "cron" && f.When == whenEvery:
			input = "every" // the expression is hidden; what is missing is the interval
		case known:
		case strings.HasPrefix(field.Field, "target_config") && f.Kind == string(dts.HTTPCallback):
			input = "url"
		case strings.HasPrefix(field.Field, "target_config"):
			input = "shell"
		default:
			e.add("", sentence(field.Field, field.Message))
			continue
		}
		e.add(input, sentence(labels[input], field.Message))
	}
	return true
}

// spec builds what to run.
func (f form) spec(e formErrors) dts.Spec {
	s := dts.Spec{Name: f.Name, Description: f.Description, TargetType: dts.TargetType(f.Kind)}
	if f.Timeout != "" {
		n, err := strconv.ParseFloat(f.Timeout, 64)
		if err != nil || n <= 0 {
			e.add("timeout", "The timeout must be a number of seconds such as 300")
		}
		s.TimeoutSeconds = n
	}
	if f.Attempts != "" {
		n, err := strconv.Atoi(f.Attempts)
		if err != nil || n < 1 {
			e.add("attempts", "The number of attempts must be 1 (no retry) to 100")
		}
		s.Retry.MaxAttempts = n
	}
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

// recurring reports whether the form describes a recurring task.
func (f form) recurring() bool { return f.When != whenOnce }

// schedule reads when a recurring task runs.
func (f form) schedule(e formErrors) dts.Schedule {
	s := dts.Schedule{TimeZone: f.Zone}
	if f.When != whenEvery {
		s.Cron = f.Cron
		if f.Cron == "" {
			e.add("cron", "Enter a cron expression, such as */5 * * * *")
		}
		return s
	}
	d, err := cron.ParseInterval(f.Every)
	switch {
	case f.Every == "":
		e.add("every", "Enter an interval, such as 90s, 15m, 1h30m or 1d")
	case err != nil:
		e.add("every", sentence("The interval", err.Error()))
	default:
		s.IntervalSeconds = d.Seconds()
	}
	return s
}

// runAt reads when a one-time task runs; empty means now.
func (f form) runAt(e formErrors, now time.Time) time.Time {
	loc, err := cron.LoadLocation(f.Zone)
	if err != nil {
		e.add("zone", sentence("", err.Error()))
		return now
	}
	if f.At == "" {
		return now
	}
	at, ok := parseWall(f.At, loc)
	if !ok {
		e.add("at", "The time must be a date and time such as 2030-01-31T08:00")
		return now
	}
	return at
}

type newPage struct {
	shared
	form
	Errors  formErrors
	Preview previewView
	Fresh   bool // nothing has been entered yet
}

// field is one input with its message, for the template.
type field struct {
	ID, Value, Error string
}

func newField(e formErrors, id, value string) field { return field{id, value, e[id]} }

// newPage shows the empty form.
func (h *handler) newPage(w http.ResponseWriter, r *http.Request, _ auth.Principal) error {
	f := form{Key: dts.NewID(h.now()), Kind: string(dts.Command), Method: "POST", When: whenCron}
	if r.URL.Query().Get("when") == whenOnce {
		f.When = whenOnce
	}
	return h.render(w, http.StatusOK, "new", newPage{shared: h.shared(r, "new"), form: f, Preview: f.preview(h.now()), Fresh: true})
}

// create saves the form, or shows it again with the messages. A browser without JavaScript asks for the
// preview here too.
func (h *handler) create(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	f := readForm(r.PostForm)
	now := h.now()
	d := newPage{shared: h.shared(r, "new"), form: f, Errors: formErrors{}, Preview: f.preview(now)}
	if r.PostForm.Get("do") == "preview" {
		if f.When == whenOnce || f.Cron != "" || f.Every != "" {
			d.Errors = d.Preview.errors
		}
		return h.render(w, http.StatusOK, "new", d)
	}
	to, existed, err := h.save(r, p, f, d.Errors, now)
	switch {
	case len(d.Errors) > 0:
		return h.render(w, http.StatusUnprocessableEntity, "new", d)
	case dts.CodeOf(err) == dts.ErrConflict:
		// The reader went back to a form that had been saved, and changed it: with a new key it is a new task.
		d.Key = dts.NewID(now)
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
// goes into e.
func (h *handler) save(r *http.Request, p auth.Principal, f form, e formErrors, now time.Time) (to string, existed bool, err error) {
	if f.recurring() {
		rt := &dts.RecurringTask{TenantID: p.TenantID, Spec: f.spec(e), Schedule: f.schedule(e), CreatedBy: p.Name,
			IdempotencyKey: f.Key, RequestHash: f.hash()}
		if f.NoOverlap != "" {
			rt.OverlapPolicy = dts.OverlapSkip
		}
		if e["cron"] == "" && e["every"] == "" {
			_, err := instants(rt.Schedule, rt.Name, now)
			e.merge(f, err)
		}
		e.merge(f, rt.Normalize())
		if len(e) > 0 {
			return "", false, nil
		}
		c, err := h.Scheduler.CreateRecurring(r.Context(), rt)
		if err != nil {
			e.merge(f, err)
			return "", false, err
		}
		return "/ui/recurring/" + c.Item.ID, c.Existed, nil
	}
	t := &dts.Task{TenantID: p.TenantID, Spec: f.spec(e), RunAt: f.runAt(e, now), CreatedBy: p.Name,
		IdempotencyKey: f.Key, RequestHash: f.hash()}
	e.merge(f, t.Normalize(now))
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

package ui

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
)

func onceForm() url.Values {
	return url.Values{"key": {"k1"}, "kind": {"COMMAND"}, "shell": {"./report"}, "when": {"once"}, "zone": {"Europe/Berlin"}, "do": {"save"}}
}

func TestAddWithLife(t *testing.T) {
	s := newSite(t)
	a, b := dts.NewID(testNow), dts.NewID(testNow)
	form := onceForm()
	for k, v := range map[string]string{
		"queue": "reports", "priority": "HIGH", "attempts": "4", "backoff": "LIST", "delays": "500ms, 10s,1m", "retry_on": "exit:75, timeout",
		"after": a + "\r\n\r\n https://dts.example.com/ui/tasks/" + b + "?done=added \r\n", "must": "MUST_FINISH", "mode": "ANY", "on_failure": "FAIL",
		"dedupe": "report", "dedupe_policy": "KEEP_FIRST", "expires": "2026-03-05T09:00",
	} {
		form.Set(k, v)
	}
	w, _ := s.post("/ui/new", form)
	if w.Code != 303 || len(s.tasks) != 1 {
		t.Fatalf("%d, %d tasks\n%s", w.Code, len(s.tasks), w.Body)
	}
	task := s.tasks[0]
	if task.Queue != "reports" || task.Priority != dts.High || task.MaxAttempts != 4 || task.Retry.Backoff != dts.List ||
		!slices.Equal(task.Retry.DelaysMS, []int64{500, 10_000, 60_000}) || task.Retry.On.Words() != "exit code 75; timeout" {
		t.Errorf("added %+v", task.Spec)
	}
	want := []dts.DependsOn{{TaskID: a, Type: dts.MustFinish}, {TaskID: b, Type: dts.MustFinish}}
	if !slices.Equal(task.DependsOn, want) || task.DependsMode != dts.DependsAny || task.OnDependencyFailure != dts.FailOnFailure {
		t.Errorf("depends on %+v, %s, %s", task.DependsOn, task.DependsMode, task.OnDependencyFailure)
	}
	if task.DedupeKey != "report" || task.DedupePolicy != dts.DedupeKeepFirst || !task.ExpiresAt.Equal(time.Date(2026, 3, 5, 8, 0, 0, 0, time.UTC)) {
		t.Errorf("dedupe %q %s, expires %v", task.DedupeKey, task.DedupePolicy, task.ExpiresAt)
	}
}

// What belongs to a task that runs once means nothing to one that recurs, whose form hides it.
func TestRecurringHasNoOnce(t *testing.T) {
	s := newSite(t)
	form := cronForm()
	for k, v := range map[string]string{"after": "nonsense", "dedupe": "k", "expires": "never", "base_delay": "5s", "max_delay": "1h", "queue": "q"} {
		form.Set(k, v)
	}
	if w, _ := s.post("/ui/new", form); w.Code != 303 {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	if r := s.recurring[0]; r.Queue != "q" || r.Retry.BaseDelayMS != 5000 || r.Retry.MaxDelayMS != 3_600_000 {
		t.Errorf("added %+v", r.Spec)
	}
}

func TestLifeErrors(t *testing.T) {
	id := dts.NewID(testNow)
	for _, tt := range []struct {
		set   url.Values
		field string
		want  string
	}{
		{url.Values{"after": {id + "\nx"}}, "after", "Line 2 is not the id of a task"},
		{url.Values{"after": {id + "\n" + id}}, "after", "Line 2: "},
		{url.Values{"queue": {"Not A Queue"}}, "queue", "is not a queue name"},
		{url.Values{"backoff": {"LIST"}}, "delays", "Enter delays, such as"},
		{url.Values{"backoff": {"LIST"}, "delays": {"1m, soon"}}, "delays", "Write a delay like"},
		{url.Values{"base_delay": {"5"}}, "base_delay", "Write a delay like"},
		{url.Values{"base_delay": {"10m"}, "max_delay": {"1m"}}, "max_delay", "The longest delay is smaller than"},
		{url.Values{"retry_on": {"5xx"}}, "retry_on", "which only an HTTP request has"},
		{url.Values{"dedupe": {strings.Repeat("x", dts.MaxKey+1)}}, "dedupe", "The key is "},
		{url.Values{"expires": {"tomorrow"}}, "expires", "must be a date and time"},
		{url.Values{"expires": {"2020-01-01T00:00"}}, "expires", ""},
	} {
		s := newSite(t)
		form := onceForm()
		for k, v := range tt.set {
			form[k] = v
		}
		w, d := s.post("/ui/new", form)
		if w.Code != 422 || len(s.tasks) != 0 {
			t.Errorf("%v: %d, %d tasks", tt.set, w.Code, len(s.tasks))
			continue
		}
		d.id(tt.field + "-error").want(tt.want)
		open := d.all("details", "id", "once-only")[0].hasAttr("open") || d.all("details", "id", "retries")[0].hasAttr("open") || d.all("details", "id", "more-options")[0].hasAttr("open")
		if !open {
			t.Errorf("%v: what is wrong is out of sight", tt.set)
		}
	}
}

// A task that has the dedupe key already is told beside the key.
func TestDuplicate(t *testing.T) {
	s := newSite(t)
	s.fail = dts.Errorf(dts.ErrConflict, `the task x, which is PENDING, has the dedupe_key "report"`)
	form := onceForm()
	form.Set("dedupe", "report")
	w, d := s.post("/ui/new", form)
	if w.Code != 409 {
		t.Errorf("%d", w.Code)
	}
	d.id("dedupe-error").want(`The task x, which is PENDING, has the dedupe_key "report"`)
}

func TestNewAfter(t *testing.T) {
	id := dts.NewID(testNow)
	d := newSite(t).get("/ui/new?after="+id, 200)
	if got := d.id("after").text(); got != id {
		t.Errorf("after %q", got)
	}
	if !d.all("input", "value", "once")[0].hasAttr("checked") || !d.id("once-only").hasAttr("open") {
		t.Error("it is not a form for a task that runs once after another")
	}
	if got := newSite(t).get("/ui/new?after=x", 200).id("after").text(); got != "" {
		t.Errorf("after %q", got)
	}
}

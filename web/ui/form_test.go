package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dts"
)

func cronForm() url.Values {
	return url.Values{"key": {"k1"}, "name": {"Nightly backup"}, "kind": {"COMMAND"}, "shell": {"./backup.sh --full"},
		"when": {"cron"}, "cron": {"0 2 * * *"}, "zone": {"Europe/Berlin"}, "do": {"save"}}
}

func TestNewPage(t *testing.T) {
	d := newSite(t).get("/ui/new", 200)
	if !dts.IsID(d.all("input", "name", "key")[0].attr("value")) {
		t.Error("the form has no key of its own")
	}
	d.id("preview").want("the next five times appear here")
	if !d.id("zone").hasAttr("data-guess") {
		t.Error("the fresh form does not take the reader's zone")
	}
	d = newSite(t).get("/ui/new?when=once", 200)
	if !d.all("input", "value", "once")[0].hasAttr("checked") {
		t.Error("?when=once does not choose it")
	}
}

func TestAddRecurring(t *testing.T) {
	s := newSite(t)
	form := cronForm()
	form.Set("timeout", "90")
	form.Set("attempts", "1")
	form.Set("overlap", "SKIP")
	w, _ := s.post("/ui/new", form)
	if len(s.recurring) != 1 {
		t.Fatalf("%d recurring tasks; answer %d\n%s", len(s.recurring), w.Code, w.Body)
	}
	r := s.recurring[0]
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/ui/recurring/"+r.ID+"?done=added" {
		t.Errorf("%d to %s", w.Code, to)
	}
	c, err := r.Command()
	if err != nil || c.Shell != "./backup.sh --full" || r.Name != "Nightly backup" || r.Cron != "0 2 * * *" || r.TimeZone != "Europe/Berlin" ||
		r.TimeoutSeconds != 90 || r.Retry.MaxAttempts != 1 || r.OverlapPolicy != dts.OverlapSkip || r.CreatedBy != "admin" || r.IdempotencyKey != "k1" {
		t.Errorf("added %+v, %v", r, err)
	}
	s.get("/ui/recurring/"+r.ID+"?done=added", 200).want("Added.", "At 02:00 every day")
}

func TestAddInterval(t *testing.T) {
	s := newSite(t)
	form := cronForm()
	form.Set("when", "every")
	form.Set("every", "1h30m")
	if w, _ := s.post("/ui/new", form); w.Code != 303 || s.recurring[0].IntervalSeconds != 5400 || s.recurring[0].Cron != "" {
		t.Errorf("%d, %+v", w.Code, s.recurring)
	}
}

func TestAddOnce(t *testing.T) {
	s := newSite(t)
	form := url.Values{"key": {"k2"}, "kind": {"HTTP_CALLBACK"}, "method": {"PUT"}, "url": {"https://example.com/x"}, "body": {"hi"},
		"headers": {"Accept: text/plain\r\nX-A:  b: c\r\n\r\n"}, "when": {"once"}, "at": {"2026-03-05T09:00"}, "zone": {"Asia/Tokyo"}, "do": {"save"}}
	w, _ := s.post("/ui/new", form)
	if len(s.tasks) != 1 {
		t.Fatalf("%d tasks; answer %d\n%s", len(s.tasks), w.Code, w.Body)
	}
	task := s.tasks[0]
	h, err := task.HTTP()
	if err != nil || h.URL != "https://example.com/x" || h.Method != "PUT" || h.Body != "hi" || h.Headers["Accept"] != "text/plain" || h.Headers["X-A"] != "b: c" {
		t.Errorf("added %+v, %v", h, err)
	}
	if want := time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC); !task.RunAt.Equal(want) {
		t.Errorf("runs at %v, want %v", task.RunAt, want)
	}
	if to := w.Header().Get("Location"); to != "/ui/tasks/"+task.ID+"?done=added" {
		t.Errorf("leads to %s", to)
	}

	// Sent twice, it is one task. Changed and sent again, the reader is asked.
	w, _ = s.post("/ui/new", form)
	if to := w.Header().Get("Location"); len(s.tasks) != 1 || to != "/ui/tasks/"+task.ID+"?done=existed" {
		t.Errorf("sent twice: %d tasks, %s", len(s.tasks), to)
	}
	form.Set("body", "other")
	w, d := s.post("/ui/new", form)
	if w.Code != 409 || len(s.tasks) != 1 {
		t.Errorf("changed: %d, %d tasks", w.Code, len(s.tasks))
	}
	d.id("errors").want("saved once already")
	if d.all("input", "name", "key")[0].attr("value") == "k2" {
		t.Error("the form keeps the key that is spent")
	}
}

func TestFormErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   url.Values
		field string // whose message
		want  string
	}{
		{"no command", url.Values{"shell": {""}}, "shell", "Enter the command to run"},
		{"no cron", url.Values{"cron": {""}}, "cron", "Enter a cron expression"},
		{"bad cron", url.Values{"cron": {"61 * * * *"}}, "cron", `Minute field "61"`},
		{"never", url.Values{"cron": {"0 0 30 2 *"}}, "cron", "never run"},
		{"bad zone", url.Values{"zone": {"Europe/Berln"}}, "zone", "did you mean Europe/Berlin"},
		{"no interval", url.Values{"when": {"every"}}, "every", "Enter an interval"},
		{"bad interval", url.Values{"when": {"every"}, "every": {"soon"}}, "every", "soon"},
		{"bad time", url.Values{"when": {"once"}, "at": {"tomorrow"}}, "at", "must be a date and time"},
		{"past", url.Values{"when": {"once"}, "at": {"2020-01-01T00:00"}}, "at", "more than an hour in the past"},
		{"no address", url.Values{"kind": {"HTTP_CALLBACK"}}, "url", "The address is missing"},
		{"bad address", url.Values{"kind": {"HTTP_CALLBACK"}, "url": {"ftp://x/"}}, "url", `has the scheme "ftp"`},
		{"bad header", url.Values{"kind": {"HTTP_CALLBACK"}, "url": {"https://x/"}, "headers": {"nonsense"}}, "headers", "Name: value"},
		{"bad header name", url.Values{"kind": {"HTTP_CALLBACK"}, "url": {"https://x/"}, "headers": {"a b: c"}}, "headers", "is not a header name"},
		{"bad method", url.Values{"kind": {"HTTP_CALLBACK"}, "url": {"https://x/"}, "method": {"CONNECT"}}, "method", "is not allowed"},
		{"relative directory", url.Values{"dir": {"tmp"}}, "dir", "must be an absolute path"},
		{"long name", url.Values{"name": {strings.Repeat("x", 300)}}, "name", "300 bytes long"},
		{"bad timeout", url.Values{"timeout": {"long"}}, "timeout", "number of seconds"},
		{"bad attempts", url.Values{"attempts": {"1000"}}, "attempts", "1 (no retry) to 100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			form := cronForm()
			for k, v := range tt.set {
				form[k] = v
			}
			w, d := s.post("/ui/new", form)
			if w.Code != http.StatusUnprocessableEntity || len(s.tasks)+len(s.recurring) > 0 {
				t.Fatalf("status %d, %d added", w.Code, len(s.tasks)+len(s.recurring))
			}
			d.id("errors")
			d.id(tt.field + "-error").want(tt.want)
			if input := d.all("", "name", tt.field); tt.field != "method" && input[0].attr("aria-invalid") != "true" {
				t.Error("the input is not marked")
			}
			for name, values := range form {
				if in := d.all("input", "name", name); len(in) == 1 && in[0].attr("type") != "checkbox" && in[0].attr("value") != values[0] {
					t.Errorf("%s was %q and is now %q", name, values[0], in[0].attr("value"))
				}
			}
			if in := d.all("textarea", "name", "shell"); in[0].text() != form.Get("shell") {
				t.Errorf("the command is now %q", in[0].text())
			}
		})
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	form := cronForm()
	for k, v := range map[string]string{"shell": "", "cron": "61 * * * *", "timeout": "-1", "dir": "tmp"} {
		form.Set(k, v)
	}
	_, d := newSite(t).post("/ui/new", form)
	for _, input := range []string{"shell", "cron", "timeout", "dir"} {
		d.id(input + "-error")
	}
}

func TestSchedulerRefusesForm(t *testing.T) {
	s := newSite(t)
	s.fail = dts.Errorf(dts.ErrFull, "the disk is full; nothing was changed")
	w, d := s.post("/ui/new", cronForm())
	if w.Code != http.StatusInsufficientStorage {
		t.Errorf("status %d", w.Code)
	}
	d.id("errors").want("The disk is full; nothing was changed")
	s.fail = dts.Invalid("cron", "fires more often than allowed")
	_, d = s.post("/ui/new", cronForm())
	d.id("cron-error").want("Fires more often than allowed")
}

func TestPreview(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  url.Values
		want []string
	}{
		{"cron", nil, []string{"At 02:00 every day", "Europe/Berlin", "Thu 5 Mar 2026, 02:00:00 CET", "in 14 h 30 min", "Mon 9 Mar 2026"}},
		{"cron with its own zone", url.Values{"cron": {"CRON_TZ=Asia/Tokyo 0 2 * * *"}}, []string{"Asia/Tokyo", "02:00:00 JST"}},
		{"into summer time", url.Values{"cron": {"30 2 29 3 *"}}, []string{"Sun 29 Mar 2026, 03:00:00 CEST"}},
		{"interval", url.Values{"when": {"every"}, "every": {"90s"}}, []string{"Every 90 seconds", "11:31:30 CET", "in 1 min 30 s"}},
		{"once", url.Values{"when": {"once"}, "at": {"2026-03-05T09:00"}}, []string{"Once", "Thu 5 Mar 2026, 09:00:00 CET"}},
		{"now", url.Values{"when": {"once"}}, []string{"as soon as it is saved"}},
		{"boot", url.Values{"cron": {"@reboot"}}, []string{"Once after each boot", "after each start of the machine"}},
		{"nothing yet", url.Values{"cron": {""}}, []string{"Say when it runs"}},
		{"wrong", url.Values{"cron": {"* * *"}}, []string{"has 3 fields"}},
		{"hostile", url.Values{"cron": {"<script>"}}, []string{"<script>"}},
		{"past", url.Values{"when": {"once"}, "at": {"2020-01-01T00:00"}}, []string{"in the past"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			form := cronForm()
			for k, v := range tt.set {
				form[k] = v
			}
			r := s.postPart("/ui/preview", form)
			r.want(tt.want...)
			if len(r.all("script", "", "")) > 0 {
				t.Error("the expression became a script")
			}
			// Without JavaScript, the same by the button.
			form.Set("do", "preview")
			w, d := s.post("/ui/new", form)
			if w.Code != 200 || len(s.recurring)+len(s.tasks) > 0 {
				t.Errorf("preview: status %d, %d added", w.Code, len(s.recurring)+len(s.tasks))
			}
			d.id("preview").want(tt.want...)
		})
	}
}

// postPart posts a form whose answer is a part of a page.
func (s *site) postPart(path string, form url.Values) doc {
	s.t.Helper()
	w := s.do(formRequest(path, form), &admin)
	if w.Code != 200 {
		s.t.Fatalf("POST %s: %d", path, w.Code)
	}
	return parse(s.t, w.Body.String())
}

func TestHugeForm(t *testing.T) {
	s := newSite(t)
	form := cronForm()
	form.Set("shell", strings.Repeat("x", maxForm))
	w, d := s.post("/ui/new", form)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", w.Code)
	}
	d.want("larger than 3 MB")
}

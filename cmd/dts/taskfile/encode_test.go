package taskfile

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dts"
	"dts/web/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What is exported and read again is the same, and so applying an export changes nothing.
func TestEncodeRoundTrip(t *testing.T) {
	s := schema(t)
	rapid.Check(t, func(t *rapid.T) {
		retries := map[string]*dts.Retry{}
		if rapid.Bool().Draw(t, "queue has retries") {
			retries["default"] = &dts.Retry{MaxAttempts: 7, Backoff: dts.Fixed}
		}
		c := Content{Name: "f", QueueRetries: retries}
		for i := range rapid.IntRange(0, 3).Draw(t, "tasks") {
			r := drawRecurring(t, fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"a", "yes", "1", "# b: ", "é\n"}).Draw(t, "name"), i))
			if err := r.Normalize(); err != nil {
				t.Fatalf("%+v: %s", r, err)
			}
			c.Recurring = append(c.Recurring, r)
		}
		src, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		f, problems := Parse("f.yaml", src, testNow)
		if len(problems) > 0 {
			t.Fatalf("%v in\n%s", problems, src)
		}
		if bad := validate(s, src); bad != "" {
			t.Fatalf("the schema: %s in\n%s", bad, src)
		}
		again := map[string]*dts.RecurringTask{}
		for _, x := range f.Tasks {
			again[x.Name] = made(t, x)
		}
		for _, w := range f.Workflows {
			r, err := w.Recurring.RecurringTask(testNow)
			if err != nil {
				t.Fatal(err)
			}
			again[w.Name] = r
		}
		for _, r := range c.Recurring {
			n := again[r.Name]
			if n == nil {
				t.Fatalf("%q is not in\n%s", r.Name, src)
			}
			if q := retries[r.Queue]; n.RetryDefault && q != nil && n.Delivery != dts.AtMostOnce {
				n.Retry = normal(*q) // as the server does
			}
			if d := Compare(FieldsOf(r), FieldsOf(n)); len(d) > 0 {
				t.Fatalf("%s: %s → %s in\n%s", d[0].Field, d[0].Old, d[0].New, src)
			}
		}
	})
}

// What JSON can have as it is and YAML cannot is escaped, so that the JSON form is read as it was, too.
func TestJSONTexts(t *testing.T) {
	const hard = "a\u0085b\u007f\u0080\u2028\ufeff\uffff\r\n\t\x00<&>é😀 c"
	r := &dts.RecurringTask{Schedule: dts.Schedule{Cron: "0 3 * * *"}, Spec: dts.Spec{Name: "a", TargetType: dts.Command,
		TargetConfig: encode(dts.CommandTarget{Argv: []string{"cat"}, Stdin: hard})}}
	if err := r.Normalize(); err != nil {
		t.Fatal(err)
	}
	src, err := Encode(Content{Name: "f", Recurring: []*dts.RecurringTask{r}})
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := JSON(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{string(src), string(inJSON)} {
		if c, err := parse(t, form).Tasks[0].Command(); err != nil || c.Stdin != hard {
			t.Errorf("%q, %v, want %q, in\n%s", c.Stdin, err, hard, form)
		}
	}
}

func made(t *rapid.T, x *Task) *dts.RecurringTask {
	r, err := x.Recurring.RecurringTask(testNow)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// anyText is text that YAML could misread.
func anyText(t *rapid.T, name string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "yes", "No", "~", "null", "1", "1.5", "0x1F", "1e3", "2026-03-01", "- a", "a: b", "a #b", "{a}", "[a", "*a", "&a", "!a", "%a", "@a", "`a",
			"|", ">", "'", "\"", "a\nb", "a\nb\n", "a\n\n", " a\nb", "a \nb", "a\n b\n", "a\tb\nc", "\\", "é", "😀", "\u2028", "a\rb", "<<", "=", "12:30", ".5", ".", "..", "1h", "on", "x\u0085y", "\ufeff"}),
		rapid.StringN(1, 20, 60).Filter(func(s string) bool { return !strings.ContainsRune(s, 0) }),
	).Draw(t, name)
}

func drawTarget(t *rapid.T, steps bool) (dts.TargetType, json.RawMessage) {
	free := rapid.MapOfN(rapid.SampledFrom([]string{"A", "run_at", "x_seconds", "y"}), rapid.Custom(func(t *rapid.T) string { return anyText(t, "value") }), 0, 3)
	kinds := []string{"argv", "shell", "url"}
	if steps {
		kinds = append(kinds, "steps")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "target") {
	case "argv":
		return dts.Command, encode(dts.CommandTarget{Argv: []string{anyText(t, "program"), anyText(t, "argument")}, Env: free.Draw(t, "env"), Stdin: anyText(t, "stdin")})
	case "shell":
		return dts.Command, encode(dts.CommandTarget{Shell: "a" + anyText(t, "line"), ShellPath: "/bin/bash", Dir: "/" + anyText(t, "dir"), User: "u"})
	case "url":
		h := free.Draw(t, "headers")
		for k, v := range h {
			if h[k] = "v"; !strings.ContainsAny(v, "\r\n") {
				h[k] = v
			}
		}
		return dts.HTTPCallback, encode(dts.HTTPTarget{URL: "http://h/" + rapid.SampledFrom([]string{"", "a?b=c#d", "%20"}).Draw(t, "url"), Body: anyText(t, "body"), Headers: h, ExpectStatus: []int{200, 204}, Method: "PUT"})
	}
	var w dts.WorkflowTarget
	for i := range rapid.IntRange(1, 4).Draw(t, "steps") {
		s := dts.Step{Spec: dts.Spec{Name: fmt.Sprintf("s%d", i), TimeoutSeconds: float64(i) * 30, Retry: dts.Retry{MaxAttempts: i, BaseDelayMS: int64(i) * 1500}}}
		s.TargetType, s.TargetConfig = drawTarget(t, false)
		for k := range i {
			if rapid.Bool().Draw(t, "depends") {
				s.DependsOn = append(s.DependsOn, dts.StepDependsOn{Step: fmt.Sprintf("s%d", k), Type: rapid.SampledFrom([]dts.DependencyType{"", dts.MustFinish}).Draw(t, "type")})
			}
		}
		if len(s.DependsOn) > 0 && s.TargetType == dts.Command {
			s.Inputs = []string{s.DependsOn[0].Step}
			s.DependsMode = dts.DependsAny
		}
		w.Steps = append(w.Steps, s)
	}
	return dts.WorkflowRun, encode(w)
}

func drawRecurring(t *rapid.T, name string) *dts.RecurringTask {
	maybe := func(name string) bool { return rapid.Bool().Draw(t, name) }
	seconds := rapid.SampledFrom([]float64{0, 0.5, 1.25, 30, 90, 5400, 86400})
	r := &dts.RecurringTask{}
	r.Name = name
	r.TargetType, r.TargetConfig = drawTarget(t, true)
	switch rapid.IntRange(0, 3).Draw(t, "schedule") {
	case 0:
		r.Cron = "*/5 3 * * *\n0 4 1,15 * mon"
	case 1:
		r.Cron = rapid.SampledFrom([]string{"@daily", "@every 90s", "0 0 12 * * ?", "H 3 * * *", "@reboot", " 1 2 * * *\n\n"}).Draw(t, "cron")
	case 2:
		r.IntervalSeconds = rapid.SampledFrom([]float64{1, 1.5, 90, 3600, 86400, 1.0000001}).Draw(t, "interval")
	default:
		r.RRule = "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9;BYMINUTE=0"
	}
	if maybe("times") {
		r.StartTime, r.EndTime = testNow.Add(time.Microsecond), testNow.AddDate(1, 0, 0)
		r.MaxRuns, r.TimeZone, r.JitterSeconds = 5, "Europe/Berlin", seconds.Draw(t, "jitter")
	}
	if maybe("dst") {
		r.DSTGap, r.DSTOverlap = dts.GapSkip, dts.OverlapBoth
	}
	if maybe("calendars") && strings.TrimSpace(r.Cron) != "@reboot" {
		r.ExcludeCalendars, r.CalendarShift = []string{"holidays", "1.0"}, dts.ShiftNext
	}
	if maybe("missed") {
		r.CatchUpMode = rapid.SampledFrom([]dts.CatchUpMode{dts.RunOneNow, dts.RunAllMissed, dts.SkipMissed}).Draw(t, "mode")
		if r.MisfireAfterSeconds, r.CatchUpWindowSeconds = 90, seconds.Draw(t, "window"); r.CatchUpMode == dts.RunAllMissed {
			r.CatchUpLimit, r.CatchUpPacingSeconds = rapid.IntRange(0, 1000).Draw(t, "limit"), seconds.Draw(t, "pacing")
		}
	}
	r.OverlapPolicy = rapid.SampledFrom([]dts.OverlapPolicy{"", dts.OverlapSkip}).Draw(t, "overlap")
	r.Queue = rapid.SampledFrom([]string{"", "1", "no", "a.b"}).Draw(t, "queue")
	r.Priority = rapid.SampledFrom([]dts.Priority{"", dts.High, dts.Low}).Draw(t, "priority")
	if maybe("words") {
		r.Description = anyText(t, "description")
		r.Labels = map[string]string{"a": anyText(t, "label"), "x_seconds": "3"}
	}
	r.SLASeconds = seconds.Draw(t, "sla")
	if r.TargetType == dts.WorkflowRun {
		return r
	}
	r.TimeoutSeconds = seconds.Draw(t, "timeout")
	if maybe("once") {
		r.Delivery = dts.AtMostOnce
	} else if maybe("retry") {
		jitter := false
		r.Retry = rapid.SampledFrom([]dts.Retry{{MaxAttempts: 1}, {MaxAttempts: 3}, {Backoff: dts.Fixed, BaseDelayMS: 1500}, {Backoff: dts.List, DelaysMS: []int64{1000, 90_000}},
			{MaxAttempts: 9, Backoff: dts.List, DelaysMS: []int64{1}}, {BaseDelayMS: 7_200_000}, {Jitter: &jitter, MaxDelayMS: 5000},
			{On: &dts.RetryOn{HTTPStatus: []string{"429", "5xx"}, ExitCodes: []string{}, Errors: []dts.RetryFailure{dts.FailureTimeout}}}}).Draw(t, "retries")
	}
	if maybe("key") {
		r.ConcurrencyKey, r.ConcurrencyLimit = anyText(t, "concurrency key"), rapid.IntRange(0, 3).Draw(t, "concurrency limit")
	}
	if maybe("resources") {
		r.Resources = &dts.Resources{CPU: 0.5, MemoryMB: 512}
		r.WarnLateSeconds, r.WarnLongerSeconds, r.WarnShorterSeconds = 60, 3600, 0.25
	}
	r.Preemptible = r.Priority == dts.Low && r.TargetType == dts.Command && maybe("preemptible")
	return r
}

// A file that is read and written is as good as it was.
func TestEncodeGolden(t *testing.T) {
	src, err := os.ReadFile("../../../testdata/files/nightly.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := parse(t, string(src))
	c := Content{Name: f.Name}
	for _, x := range f.Tasks {
		r, err := x.Recurring.RecurringTask(testNow)
		if err != nil {
			t.Fatal(err)
		}
		c.Recurring = append(c.Recurring, r)
	}
	for _, w := range f.Workflows {
		r, err := w.Recurring.RecurringTask(testNow)
		if err != nil {
			t.Fatal(err)
		}
		c.Recurring = append(c.Recurring, r)
	}
	for _, q := range f.Queues {
		made, err := q.Request.Queue(q.Name)
		if err != nil {
			t.Fatal(err)
		}
		c.Queues = append(c.Queues, made)
	}
	for _, k := range f.Calendars {
		form := calendarForm{k.Request}
		form.Name = k.Name
		made, err := form.Calendar()
		if err != nil {
			t.Fatal(err)
		}
		c.Calendars = append(c.Calendars, made)
	}
	got, err := Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "nightly.golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s", got)
	}
}

// What can be asked of a recurring task is compared, changed and exported: a field that the API gets is to be in FieldsOf, too.
func TestFieldsOf(t *testing.T) {
	var asked, compared []string
	for _, f := range fieldsOf(reflect.TypeFor[api.RecurringRequest]()) {
		if f.name != "idempotency_key" {
			asked = append(asked, f.name)
		}
	}
	var all []Difference
	for _, f := range FieldsOf(&dts.RecurringTask{}) {
		compared = append(compared, f.Name)
		if f.Name != "delivery" && f.Name != "interval_seconds" && f.Name != "rrule" {
			all = append(all, Difference{f.Name, nil, f.Value})
		}
	}
	slices.Sort(asked)
	slices.Sort(compared)
	if !slices.Equal(asked, compared) {
		t.Errorf("a request has %v, and FieldsOf %v", asked, compared)
	}
	if _, err := Patch(all); err != nil {
		t.Error(err)
	}
}

package taskfile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dts"
)

var testNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Each file of testdata/wrong says in comments what is wrong with it: "# 3:5: message".
func TestProblems(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(src)) {
				if text, ok := strings.CutPrefix(line, "#! "); ok {
					want = append(want, strings.TrimSpace(text))
				}
			}
			_, problems := Parse("f.yaml", src, testNow)
			var got []string
			for _, p := range problems {
				got = append(got, strings.TrimSpace(strings.TrimPrefix(p.String(), "f.yaml:")))
			}
			if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
				t.Errorf("got:\n%s\n\nwant:\n%s", g, w)
			}
		})
	}
}

func parse(t *testing.T, src string) *File {
	t.Helper()
	f, problems := Parse("dir/nightly.yaml", []byte(src), testNow)
	for _, p := range problems {
		t.Error(p)
	}
	if len(problems) > 0 {
		t.FailNow()
	}
	return f
}

func TestParse(t *testing.T) {
	f := parse(t, `
# yaml-language-server: $schema=dts.json
x-common: &common {timeout: 2m, labels: {team: infra}}
defaults:
  queue: nightly
  env: {LANG: C, PORT: 80}
  retry: {max_attempts: 5, base_delay: 2s}
queues:
  nightly: {concurrency: 2, rate: 10, period: 1m}
calendars:
  holidays: {holidays: {country: de}, days: [12-24]}
tasks:
  - name: one
    command: ["echo", 1, true]
    <<: *common
    cron: ["0 3 * * *", "0 5 * * sat"]
    time_zone: Europe/Berlin
    jitter: 5m
    env: {PORT: 8080}
    retry: {max_attempts: 2}
  - name: two
    url: https://example.com/hook
    method: post
    body: |
      {"a": 1}
    expect_status: [200, 204]
    every: 90s
    overlap_policy: buffer-one
  - {name: three, command: make all, at: 2026-04-01 08:00, time_zone: Asia/Tokyo}
  - {name: four, command: [a], depends_on: [five, {task: six, type: must-finish}], inputs: [five]}
  - {name: five, target_type: COMMAND, target_config: {argv: [b]}}
  - {name: six, command: c, depends_on: [five]}
workflows:
  - name: chain
    rrule: FREQ=MONTHLY;BYDAY=2TU
    start_time: 2026-01-01T04:00:00Z
    steps:
      - {name: dump, command: [dump]}
      - {name: upload, url: "http://h/", depends_on: [{step: dump}], inputs: [dump], queue: upload}
`)
	if f.Name != "nightly" || len(f.Tasks) != 6 || len(f.Workflows) != 1 || len(f.Queues) != 1 || len(f.Calendars) != 1 {
		t.Fatalf("%+v", f)
	}
	one := f.Tasks[0]
	if got := string(one.Recurring.Cron); got != "0 3 * * *\n0 5 * * sat" {
		t.Error("cron", got)
	}
	if one.Pos != (Pos{13, 5}) || one.TimeoutSeconds != 120 || one.Recurring.JitterSeconds != 300 || one.Queue != "nightly" || one.Labels["team"] != "infra" {
		t.Errorf("%+v", one)
	}
	if got, want := string(one.TargetConfig), `{"argv":["echo","1","true"],"env":{"LANG":"C","PORT":"8080"}}`; got != want {
		t.Errorf("target_config %s, want %s", got, want)
	}
	if one.Retry.MaxAttempts != 2 || one.Retry.BaseDelayMS != 2000 || f.Tasks[1].Retry.MaxAttempts != 5 {
		t.Errorf("retry %+v", one.Retry)
	}
	two := f.Tasks[1]
	if got, want := string(two.TargetConfig), `{"url":"https://example.com/hook","method":"POST","body":"{\"a\": 1}\n","expect_status":[200,204]}`; got != want {
		t.Errorf("target_config %s, want %s", got, want)
	}
	if two.Recurring.IntervalSeconds != 90 || two.Recurring.OverlapPolicy != dts.OverlapBufferOne {
		t.Errorf("%+v", two.Recurring)
	}
	if three := f.Tasks[2]; three.Once == nil || three.Once.RunAt.Text != "2026-04-01 08:00" || three.Once.TimeZone != "Asia/Tokyo" {
		t.Errorf("%+v", three.Once)
	}
	four := f.Tasks[3]
	if four.Scheduled() || len(four.DependsOn) != 2 || four.DependsOn[0].Index != 4 || four.DependsOn[1].Index != 5 || four.DependsOn[1].Type != dts.MustFinish {
		t.Errorf("%+v", four.DependsOn)
	}
	w := f.Workflows[0]
	if w.Recurring == nil || w.Recurring.RRule == "" || len(w.Steps) != 2 || w.Steps[1].DependsOn[0].Index != 0 || w.Steps[0].Queue != "nightly" || w.Steps[1].Queue != "upload" {
		t.Errorf("%+v", w)
	}
	if q := f.Queues[0].Request; q.Concurrency != 2 || q.PeriodSeconds != 60 {
		t.Errorf("%+v", q)
	}
}

// JSON is YAML.
// The library does not say where a character is that it refuses.
func TestBadCharacters(t *testing.T) {
	for src, want := range map[string]string{
		"tasks:\n- name: a\xff\n": "f.yaml:2:10: is not valid YAML: the byte 0xff is no character; save the file as UTF-8",
		"tasks:\n- name: é\x00\n": `f.yaml:2:10: is not valid YAML: a control character is not allowed; in double quotes it can be written "\x00"`,
	} {
		_, problems := Parse("f.yaml", []byte(src), testNow)
		if len(problems) != 1 || problems[0].String() != want {
			t.Errorf("%q: %v, want %s", src, problems, want)
		}
	}
}

func TestJSON(t *testing.T) {
	f := parse(t, `{"$schema": "x", "tasks": [{"name": "a", "command": ["true"], "interval_seconds": 60, "timeout_seconds": 1.5}]}`)
	if q := f.Tasks[0].Recurring; q == nil || q.IntervalSeconds != 60 || q.TimeoutSeconds != 1.5 {
		t.Errorf("%+v", q)
	}
}

// A file cannot make much of little.
func TestBombs(t *testing.T) {
	laughs := "x-a: &a [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n"
	for c := 'b'; c <= 'k'; c++ {
		laughs += fmt.Sprintf("x-%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	var many strings.Builder
	many.WriteString("defaults:\n  labels:\n")
	for i := range 30 {
		fmt.Fprintf(&many, "    l%d: %s\n", i, strings.Repeat("x", 100))
	}
	many.WriteString("  env: &e {A: b}\ntasks:\n")
	for i := range MaxTasks {
		fmt.Fprintf(&many, "- {name: t%d, command: [a], env: *e}\n", i)
	}
	merge := "x-a: &a {k: v}\n"
	for c := 'b'; c <= 'z'; c++ {
		merge += fmt.Sprintf("x-%c: &%c {<<: [%s]}\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	for name, src := range map[string]string{
		"laughs":    laughs + "tasks: [{name: a, command: [a], target_config: *k}]",
		"in a type": laughs + "tasks: [{name: a, command: *k}]",
		"merge":     merge + "tasks: [{name: a, command: [a], env: *z}]",
		"itself":    "tasks: [&a {name: a, command: [a], env: *a, target_config: *a}]",
		"itself <<": "tasks: [&a {name: a, command: [a], <<: *a}]",
		"defaults":  "defaults: &d {labels: *d}\ntasks: []",
		"deep":      "tasks: " + strings.Repeat("[", 5000),
		"many":      many.String(),
		"big":       strings.Repeat("#", MaxBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			_, problems := Parse("f.yaml", []byte(src), testNow)
			t.Log(time.Since(started), problems)
			if len(problems) == 0 && name != "many" {
				t.Error("nothing is wrong with it")
			}
			if took := time.Since(started); took > 10*time.Second {
				t.Error("took", took)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/wrong/*.yaml", "../../../testdata/files/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		file, problems := Parse("f.yaml", src, testNow)
		for _, p := range problems {
			if p.Message == "" || p.Line < 0 || p.Column < 0 || p.Line > len(src)+2 && p.Line < 1<<30 {
				t.Errorf("%+v", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		for _, x := range file.Tasks {
			if x.Name == "" || !json.Valid(x.TargetConfig) {
				t.Errorf("%+v", x)
			}
			for _, d := range x.DependsOn {
				if file.Tasks[d.Index].Name != d.Name {
					t.Errorf("%+v", d)
				}
			}
		}
	})
}

// What the guide shows is right.
func TestGuide(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(doc), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Error("the guide has no file")
	}
	s := schema(t)
	for _, b := range blocks {
		src, _, _ := strings.Cut(b, "```")
		if strings.HasPrefix(src, "# .git") {
			continue // a file of GitHub or GitLab, which runs dts ci
		}
		parse(t, src)
		if bad := validate(s, []byte(src)); bad != "" {
			t.Errorf("the schema: %s in\n%s", bad, src)
		}
	}
}

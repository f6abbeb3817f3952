package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"dts"
	"dts/web/auth"
)

// FuzzTaskBody feeds any body to the decoder of POST /tasks. Whatever it is, it becomes a task that keeps
// the rules, or an error with a text for users whose fields have names.
func FuzzTaskBody(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[`, ``, `{"target_type":"COMMAND","target_config":{"argv":["x"]},"delay":"90s","labels":{"a":"b"}}`,
		`{"target_type":"HTTP_CALLBACK","target_config":{"url":"http://x"},"run_at":"2026-03-29T02:30:00","time_zone":"Europe/Berlin"}`,
		`{"target_type":"COMMAND","target_config":[1],"retry":{"max_attempts":1e99,"delays_ms":[1,"2"]},"Name":{},"x":{"y":[{}]}}`,
		`{"delay":1e308,"expires_at":null,"target_config":"\ud800"}`, "{\"name\":\"\xff\"}", `{"run_at":{},"delay":{},"tracing_id":"0"}`,
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte) {
		var q TaskRequest
		err := decode(body, &q)
		var task *dts.Task
		if err == nil {
			task, err = q.task(dts.DefaultTenant, "me", now, nil)
		}
		if err != nil {
			p := ProblemOf(err)
			if p.Status < 400 || p.Status >= 500 || p.Detail == "" {
				t.Fatalf("%s: %+v (%v)", body, p, err)
			}
			for _, e := range p.Errors {
				if e.Message == "" || !utf8.ValidString(e.Message) {
					t.Fatalf("%s: %+v", body, e)
				}
			}
			return
		}
		if !dts.IsID(task.ID) || task.Status != dts.Pending || task.RunAt.Before(now.Add(-dts.PastAllowed)) || task.MaxAttempts < 1 {
			t.Fatalf("%s: %+v", body, task)
		}
		if _, err := json.Marshal(task); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	})
}

func TestTextStream(t *testing.T) {
	for _, tt := range []struct {
		chunks []string
		want   string
	}{
		{[]string{"a", "b"}, "0:a 1:b"},
		{[]string{"\xe2", "\x82", "\xacx"}, "0:€x"},
		{[]string{"\xf0\x9f\x98", "y"}, "0:\uFFFDy"},
		{[]string{"a\xf0\x9f"}, "0:a 1:\uFFFD"},
		{[]string{"a\xff"}, "0:a\uFFFD"},
		{[]string{"\x80\x80\x80"}, "0:\uFFFD"},
		{[]string{""}, ""},
	} {
		rec := httptest.NewRecorder()
		text := textStream{s: &stream{ctx: t.Context(), w: rec, rc: http.NewResponseController(rec)}}
		next := int64(0)
		for _, c := range tt.chunks {
			next += int64(len(c))
			if err := text.write([]byte(c), next); err != nil {
				t.Fatal(err)
			}
		}
		if err := text.flush(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(rec.Body.String()) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				var c OutputChunk
				if err := json.Unmarshal([]byte(data), &c); err != nil {
					t.Fatal(err)
				}
				got = append(got, string(rune('0'+c.Offset))+":"+c.Text)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q: %q, want %q", tt.chunks, s, tt.want)
		}
	}
}

func TestResolveLocal(t *testing.T) {
	for _, tt := range []struct{ zone, wall, want string }{
		{"Europe/Berlin", "2026-03-29T01:59:59", "2026-03-29T00:59:59Z"},
		{"Europe/Berlin", "2026-03-29T02:00", ""},
		{"Europe/Berlin", "2026-03-29T02:59:59", ""},
		{"Europe/Berlin", "2026-10-25T02:00", "2026-10-25T00:00:00Z"},
		{"Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45:00Z"}, // half an hour, twice
		{"Australia/Lord_Howe", "2026-10-04T02:15", ""},
		{"Pacific/Apia", "2011-12-30T12:00", ""}, // a day that did not happen
		{"America/New_York", "2026-11-01 01:30:00", "2026-11-01T05:30:00Z"},
		{"UTC", "2026-01-01 00:00", "2026-01-01T00:00:00Z"},
	} {
		loc, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, local, err := parseTime(tt.wall, loc)
		if (err != nil) != (tt.want == "") || !local || err == nil && at.Format(time.RFC3339) != tt.want {
			t.Errorf("%s in %s: %v %v, want %s", tt.wall, tt.zone, at, err, tt.want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"name", "run_at", "target_config", "timeout_seconds", "max_delay_ms"}
	for wrong, want := range map[string]string{
		"nmae": "name", "runat": "run_at", "run_att": "run_at", "timeout": "timeout_seconds", "config": "target_config",
		"maxdelay": "max_delay_ms", "x": "", "frobnicate": "", strings.Repeat("n", 100): "",
	} {
		got := strings.TrimSuffix(strings.TrimPrefix(didYouMean(wrong, names), "; did you mean "), "?")
		if got != want {
			t.Errorf("%s: %q, want %q", wrong, got, want)
		}
	}
}

func TestRequestHash(t *testing.T) {
	hash := func(body string) string {
		var q TaskRequest
		if err := decode([]byte(body), &q); err != nil {
			t.Fatal(err)
		}
		return requestHash("k", &q)
	}
	a := hash(`{"name":"x","delay":5,"target_type":"COMMAND","target_config":{"argv":["a"]}}`)
	if b := hash(` {"target_config": {"argv": ["a"]}, "target_type":"COMMAND","delay":5,"name":"x"}`); a != b {
		t.Error("spaces or order matter")
	}
	if b := hash(`{"name":"x","delay":6,"target_type":"COMMAND","target_config":{"argv":["a"]}}`); a == b {
		t.Error("another delay does not matter")
	}
}

// quiet is a scheduler in which nothing happens.
type quiet struct{ Scheduler }

func (quiet) Subscribe(string) (<-chan dts.Event, func()) { return make(chan dts.Event), func() {} }

type none struct {
	Store
	Outputs
	auth.Tokens
}

// TestHeartbeat keeps a stream open for a minute of the bubble's time.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Options{Store: none{}, Scheduler: quiet{}, Outputs: none{}, Tokens: none{}, Stopping: make(chan struct{})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(auth.With(t.Context(), auth.Principal{TenantID: "default"}), time.Minute+time.Second)
		defer cancel()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/events", nil))
		if got := rec.Body.String(); got != ": dts\n\n"+strings.Repeat(":\n\n", 4) {
			t.Errorf("%q", got)
		}
	})
}

func BenchmarkDecodeTask(b *testing.B) {
	body := []byte(`{"name":"x","target_type":"HTTP_CALLBACK","target_config":{"url":"http://127.0.0.1:9/x","headers":{"A":"b"}},"delay":5,"labels":{"a":"b"}}`)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		var q TaskRequest
		if err := decode(body, &q); err != nil {
			b.Fatal(err)
		}
		if _, err := q.task("default", "me", now, nil); err != nil {
			b.Fatal(err)
		}
	}
}

package exec

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"dts"
)

func TestCommandGetsInputs(t *testing.T) {
	r := newRunner(t, Options{})
	job := newJob(t, shell(`printf '%s|%s' "$DTS_OUTPUT_FIRST_STEP" "$DTS_OUTPUT_B"`), time.Minute)
	job.Inputs = map[string]string{"first-step": "a 'b' $HOME\nc", "b": ""}
	out := r.Run(t.Context(), job)
	if got := text(out); out.State != dts.AttemptSuccess || got != "a 'b' $HOME\nc|" {
		t.Errorf("%+v: %q", out, got)
	}
}

func TestRequestGetsInputs(t *testing.T) {
	var got *http.Request
	var body string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
	})
	r := newRunner(t, Options{})
	target := dts.HTTPTarget{
		URL:     s.URL + "/?id={{outputs.a}}&x=1",
		Headers: map[string]string{"X-Of": "{{ outputs.b }}"},
		Body:    `{"text": {{outputs.a | json}}, "n": {{outputs.b}}, "no": "{{other}}"}`,
	}
	for range 2 { // the second finds nothing of the first in the cache
		job := newJob(t, target, time.Minute)
		job.Inputs = map[string]string{"a": "x&y \"z\"", "b": "17"}
		if out := r.Run(t.Context(), job); out.State != dts.AttemptSuccess {
			t.Fatalf("%+v", out)
		}
		if id := got.URL.Query().Get("id"); id != "x&y \"z\"" || got.URL.Query().Get("x") != "1" || got.Header.Get("X-Of") != "17" {
			t.Errorf("%s, %v", got.URL, got.Header)
		}
		if body != `{"text": "x\u0026y \"z\"", "n": 17, "no": "{{other}}"}` || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s of type %s", body, got.Header.Get("Content-Type"))
		}
	}
	job := newJob(t, target, time.Minute)
	job.Inputs = map[string]string{"a": "x", "b": "1\r\nX-Evil: 1"}
	if out := r.Run(t.Context(), job); out.State != dts.AttemptFailed || out.Retryable || !strings.Contains(out.Error, "control character") {
		t.Errorf("a line break in a header: %+v", out)
	}
}

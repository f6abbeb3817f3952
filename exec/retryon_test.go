package exec

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"dts"
)

// TestRetryOn: what a task says about when to try again decides, in both directions; what it does not mention is as ever.
func TestRetryOn(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscanf(r.URL.Path, "/%d", &code)
		w.Header().Set("Retry-After", "5")
		switch {
		case r.URL.Query().Has("hang"):
			<-r.Context().Done()
		case r.URL.Query().Has("break"):
			panic(http.ErrAbortHandler)
		case r.URL.Query().Has("half"):
			w.Header().Set("Content-Length", "100")
		}
		w.WriteHeader(code)
		io.WriteString(w, "status: green")
	})
	r := newRunner(t, Options{})
	http404 := &dts.RetryOn{HTTPStatus: []string{"404", "501-503"}}
	exits := &dts.RetryOn{ExitCodes: []string{"75", "137"}}
	no := &dts.RetryOn{HTTPStatus: []string{}, ExitCodes: []string{}, Errors: []dts.RetryFailure{}}
	only := func(f dts.RetryFailure) *dts.RetryOn { return &dts.RetryOn{Errors: []dts.RetryFailure{f}} }
	get := func(path string) dts.HTTPTarget { return dts.HTTPTarget{URL: s.URL + path} }
	body := dts.HTTPTarget{URL: s.URL + "/200", ExpectBody: "red"}
	closed := dts.HTTPTarget{URL: "http://127.0.0.1:1/"}
	for _, c := range []struct {
		name   string
		target any
		on     *dts.RetryOn
		retry  bool
		after  time.Duration
	}{
		{"404", get("/404"), nil, false, 0},
		{"404, listed", get("/404"), http404, true, 5 * time.Second},
		{"503, in a range", get("/503"), http404, true, 5 * time.Second},
		{"500, not listed", get("/500"), http404, false, 0},
		{"500, nothing listed", get("/500"), no, false, 0},
		{"500, only errors listed", get("/500"), only(dts.FailureTimeout), true, 5 * time.Second},
		{"hangs", get("/200?hang"), nil, true, 0},
		{"hangs, listed", get("/200?hang"), only(dts.FailureTimeout), true, 0},
		{"hangs, not listed", get("/200?hang"), only(dts.FailureConnection), false, 0},
		{"breaks", get("/200?break"), http404, true, 0},
		{"breaks, listed", get("/200?break"), only(dts.FailureConnection), true, 0},
		{"breaks, not listed", get("/200?break"), only(dts.FailureTimeout), false, 0},
		{"breaks off", get("/200?half"), nil, true, 0},
		{"breaks off, not listed", get("/200?half"), only(dts.FailureBody), false, 0},
		{"nobody listens, not listed", closed, only(dts.FailureTimeout), false, 0},
		{"body", body, nil, true, 0},
		{"body, listed", body, only(dts.FailureBody), true, 0},
		{"body, not listed", body, no, false, 0},
		{"exit 3", shell("exit 3"), http404, true, 0},
		{"exit 3, not listed", shell("exit 3"), exits, false, 0},
		{"exit 75, listed", shell("exit 75"), exits, true, 0},
		{"killed, listed", shell("kill -KILL $$"), exits, true, 0},
		{"killed, not listed", shell("kill -TERM $$"), exits, false, 0},
		{"a long command, listed", shell("sleep 60"), only(dts.FailureTimeout), true, 0},
		{"a long command, not listed", shell("sleep 60"), no, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			job := newJob(t, c.target, 500*time.Millisecond)
			job.Task.Retry.On = c.on
			if out := r.Run(t.Context(), job); out.State == dts.AttemptSuccess || out.Retryable != c.retry || out.RetryAfter != c.after {
				t.Errorf("%+v", out)
			}
		})
	}
}

package dts

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRetryOn(t *testing.T) {
	var none *RetryOn
	if !none.Status(500, true) || none.Status(500, false) || !none.Exit(1, true) || none.Failure(FailureTimeout, false) {
		t.Error("a policy that says nothing leaves it to the default")
	}
	on := &RetryOn{HTTPStatus: []string{"429", "5XX", "300-307"}, ExitCodes: []string{"75", "130-137"}, Errors: []RetryFailure{}}
	for code, want := range map[int]bool{428: false, 429: true, 499: false, 500: true, 599: true, 299: false, 300: true, 307: true, 308: false} {
		if got := on.Status(code, !want); got != want {
			t.Errorf("status %d: %v", code, got)
		}
	}
	for code, want := range map[int]bool{1: false, 74: false, 75: true, 129: false, 130: true, 137: true, 138: false} {
		if got := on.Exit(code, !want); got != want {
			t.Errorf("exit code %d: %v", code, got)
		}
	}
	if on.Failure(FailureTimeout, true) {
		t.Error("an empty list lets nothing be tried again")
	}
	if on.Errors = []RetryFailure{FailureBody}; !on.Failure(FailureBody, false) || on.Failure(FailureConnection, true) {
		t.Error("the list decides alone")
	}
	b, err := json.Marshal(RetryOn{HTTPStatus: []string{}})
	if err != nil || string(b) != `{"http_status":[]}` {
		t.Errorf("%s, %v: an empty list is not an absent one", b, err)
	}
}

func TestRetryOnIsChecked(t *testing.T) {
	for _, bad := range []struct{ json, field string }{
		{`{"http_status":["600"]}`, "http_status[0]"},
		{`{"http_status":["200","6xx"]}`, "http_status[1]"},
		{`{"http_status":["504-500"]}`, "http_status[0]"},
		{`{"http_status":["5x"]}`, "http_status[0]"},
		{`{"http_status":["+500"]}`, "http_status[0]"},
		{`{"http_status":["500-"]}`, "http_status[0]"},
		{`{"exit_codes":["0"]}`, "exit_codes[0]"},
		{`{"exit_codes":["1-256"]}`, "exit_codes[0]"},
		{`{"exit_codes":[""]}`, "exit_codes[0]"},
		{`{"errors":["timeout"]}`, "errors[0]"},
	} {
		r := Retry{On: new(RetryOn)}
		if err := json.Unmarshal([]byte(bad.json), r.On); err != nil {
			t.Fatal(err)
		}
		var f fieldErrors
		r.normalize(&f, AtLeastOnce)
		if len(f.list) != 1 || f.list[0].Field != "retry.on."+bad.field {
			t.Errorf("%s: %v", bad.json, f.list)
		}
	}
	var f fieldErrors
	r := Retry{On: &RetryOn{HTTPStatus: strings.Split(strings.Repeat("500,", 101), ",")}}
	if r.normalize(&f, AtLeastOnce); len(f.list) != 1 {
		t.Errorf("too many: %v", f.list)
	}
	f = fieldErrors{}
	r = Retry{On: &RetryOn{HTTPStatus: []string{"4xx", "500-504", "100"}, ExitCodes: []string{"1-255"}, Errors: []RetryFailure{FailureBody, FailureTimeout}}}
	if r.normalize(&f, AtLeastOnce); len(f.list) != 0 {
		t.Errorf("%v", f.list)
	}
}

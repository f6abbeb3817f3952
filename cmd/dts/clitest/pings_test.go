package clitest

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// shown is what the test reads of dts show --json.
type shown struct {
	Occurrences []struct {
		Task *struct {
			ID        string `json:"task_id"`
			Status    string
			LastError string `json:"last_error"`
		}
	}
	Pings struct {
		URL   string
		Items []struct{ Kind, Body, Source string }
	}
}

// A job reports to a real server as curl would: from any host name, through the stop of the server, and no key is logged.
func TestPings(t *testing.T) {
	s := newServer(t)
	s.start()
	var added struct {
		PingURL string `json:"ping_url"`
	}
	s.dts(&added, "add", "--name", "backup", "--every", "1h", "--ping", "--grace", "10m", "--json")
	call := func(method, what, body string, edit func(*http.Request)) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, added.PingURL+what, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if edit != nil {
			edit(r)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	for _, x := range []struct {
		method, what, body string
		edit               func(*http.Request)
		status             int
		text               string
	}{
		{"GET", "/start", "", nil, 200, "OK\n"},
		{"HEAD", "", "", nil, 200, ""},
		{"POST", "", "12 files", func(r *http.Request) { r.Host = "backup.example.com" }, 200, "OK\n"},
		{"POST", "", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 200, "OK\n"},
		{"POST", "", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") }, 200, "OK\n"},
		{"PUT", "", "", nil, 405, ""},
		{"POST", "x", "", nil, 404, ""},
		{"POST", "/", "", nil, 404, ""},
		{"GET", "", "", func(r *http.Request) { r.URL.Path = "/behind/a/proxy" + r.URL.Path }, 404, ""}, // no key is logged there either
		{"GET", "", "", func(r *http.Request) { r.URL.Path = strings.ToUpper(r.URL.Path[:5]) + r.URL.Path[5:] }, 404, ""},
		{"POST", "/256", "", nil, 404, ""},
		{"POST", "/3", "no space left", nil, 200, "OK\n"},
	} {
		if status, text := call(x.method, x.what, x.body, x.edit); status != x.status || x.text != "" && text != x.text {
			t.Errorf("%s …%s: %d %q, want %d %q", x.method, x.what, status, text, x.status, x.text)
		}
	}
	var now shown
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) { // a failure is judged at once
		s.dts(&now, "show", "backup", "--json")
		if len(now.Occurrences) > 0 && now.Occurrences[0].Task != nil && now.Occurrences[0].Task.Status == "FAILED" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the failure is not judged: %+v", now)
		}
	}
	failed := now.Occurrences[0].Task
	if !strings.Contains(failed.LastError, "exit code 3") || !strings.HasSuffix(failed.LastError, ": no space left") {
		t.Errorf("the run failed with %q", failed.LastError)
	}
	if now.Pings.URL != added.PingURL || len(now.Pings.Items) != 6 || now.Pings.Items[0].Body != "no space left" || now.Pings.Items[0].Source != "127.0.0.1" {
		t.Errorf("the pings are %+v", now.Pings)
	}
	out := exec.Command("dts", "logs", failed.ID)
	out.Env = s.env
	if text, err := out.CombinedOutput(); err != nil || !strings.Contains(string(text), "no space left") {
		t.Errorf("dts logs: %v\n%s", err, text)
	}
	s.stop()

	key := added.PingURL[strings.LastIndex(added.PingURL, "/")+1:]
	if log := s.log.String(); strings.Contains(log, key) || !strings.Contains(log, "/ping/…") {
		t.Errorf("the log has the key, or no request:\n%s", log)
	}
	s.start("--public-url", "https://dts.example.com/jobs/")
	defer s.stop()
	if s.dts(&now, "show", "backup", "--json"); now.Pings.URL != "https://dts.example.com/jobs/ping/"+key {
		t.Errorf("after a restart the URL is %s", now.Pings.URL)
	}
}

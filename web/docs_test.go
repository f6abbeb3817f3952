package web_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"dts"
	"dts/web/api"
)

var (
	shBlock  = regexp.MustCompile("(?s)```sh\n(.*?)```")
	curlBody = regexp.MustCompile(`(?s)--json '([^']*)'`)
	curlVerb = regexp.MustCompile(`-X ([A-Z]+)`)
	curlPath = regexp.MustCompile(`"\$DTS(/[^"]*)"`)
)

// TestDocumentedCalls sends every request that docs/api.md shows.
func TestDocumentedCalls(t *testing.T) {
	doc, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, nil)
	id := s.add(dts.Pending).ID
	s.attempt(id, 1, dts.AttemptSuccess, nil)
	_, _, body := s.call(t, "POST", "/recurring-tasks", `{"target_type":"COMMAND","target_config":{"argv":["x"]},"cron":"@daily"}`)
	rid := decodeAs[dts.RecurringTask](t, body).ID
	_, _, body = s.call(t, "POST", "/blackouts", `{"name":"x","calendar":"off"}`)
	bid := decodeAs[dts.Blackout](t, body).ID
	_, _, body = s.call(t, "POST", "/tasks/bulk", `{"tasks":[{"target_type":"COMMAND","target_config":{"argv":["x"]}}]}`)
	batch := decodeAs[api.BulkAnswer](t, body).BatchID
	_, _, body = s.call(t, "POST", "/tasks", `{"target_type":"COMMAND","target_config":{"argv":["x"]}}`)
	other := decodeAs[dts.Task](t, body).ID
	_, _, body = s.call(t, "POST", "/workflows", `{"name":"w","steps":[{"name":"a","target_type":"COMMAND","target_config":{"argv":["x"]}}]}`)
	run := decodeAs[dts.RunState](t, body).Run.ID
	n := 0
	for _, block := range shBlock.FindAllStringSubmatch(string(doc), -1) {
		for _, call := range strings.Split("\n"+block[1], "\ncurl ")[1:] {
			path := curlPath.FindStringSubmatch(call)
			if path == nil || strings.Contains(call, "-sN") { // the socket's example, and streams that do not end
				continue
			}
			call = strings.NewReplacer("'$LOAD'", id, "'$CLEAN'", other).Replace(call) // as the shell joins them
			method, body := "GET", ""
			if m := curlBody.FindStringSubmatch(call); m != nil {
				method, body = "POST", m[1]
			}
			if m := curlVerb.FindStringSubmatch(call); m != nil {
				method = m[1]
			}
			url := strings.NewReplacer("$ID", id, "$RID", rid, "$BID", bid, "$BATCH", batch, "$RUN", run).Replace(path[1])
			var header []string
			if strings.Contains(call, "text/calendar") {
				body, header = "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", []string{"Content-Type", "text/calendar"}
			}
			status, _, got := s.call(t, method, url, body, header...)
			if status >= 300 {
				t.Errorf("%s %s %s: %d %s", method, path[1], body, status, got)
			}
			n++
		}
	}
	if n < 59 {
		t.Errorf("only %d calls were found in docs/api.md", n)
	}
}

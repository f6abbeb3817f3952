package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// TestBench runs every scenario, small, with a real server and a real sink.
func TestBench(t *testing.T) {
	dir := t.TempDir()
	var out, errOut bytes.Buffer
	args := []string{"dts", "bench", "--json", "--dir", dir, "--runs", "2", "--tasks", "20", "--spread", "200ms", "--drain", "300"}
	if code := run(args, strings.NewReader(""), &out, &errOut); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errOut)
	}
	var r benchReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Scenarios) != len(benchScenarios) || r.Machine.Cores < 1 || r.Machine.SQLite == "" || r.Build.Go == "" {
		t.Errorf("%+v", r)
	}
	for _, s := range r.Scenarios {
		if len(s.Figures) == 0 {
			t.Errorf("%s has no figures", s.Name)
		}
		aims := 0
		for _, f := range s.Figures {
			if len(f.Values) != 2 || f.Value <= 0 || f.Ceiling <= 0 || f.Ratio <= 0 {
				t.Errorf("%s: %+v", s.Name, f)
			}
			if f.Met != nil {
				aims++
			}
		}
		for _, known := range benchScenarios {
			if known.name == s.Name && aims != len(known.aims) {
				t.Errorf("%s has %d aims, but %d figures with one", s.Name, len(known.aims), aims)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"nothing"}, `there is no scenario "nothing"`},
		{[]string{"--runs", "0"}, "--runs: is 0; use 1 to 100"},
		{[]string{"--drain", "1000001"}, "--drain: is 1000001"},
		{[]string{"--spread", "soon"}, "--spread"},
		{[]string{"sink", "more"}, "takes no arguments"},
	} {
		var out, errOut bytes.Buffer
		code := run(append([]string{"dts", "bench"}, c.args...), strings.NewReader(""), &out, &errOut)
		if code != exitUsage || !strings.Contains(errOut.String(), c.want) {
			t.Errorf("%q: exit code %d, %q", c.args, code, &errOut)
		}
	}
}

func TestSink(t *testing.T) {
	server := httptest.NewServer((&sinkHandler{}).routes())
	defer server.Close()
	sink := &benchSink{url: server.URL, http: server.Client()}
	before := time.Now()
	for _, key := range []string{"a", "b", "a"} {
		req, _ := http.NewRequest(http.MethodPost, server.URL+"/any/path", strings.NewReader("body"))
		req.Header.Set("Idempotency-Key", key)
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.ContentLength != 0 {
			t.Errorf("answered %s with %d bytes", resp.Status, resp.ContentLength)
		}
	}
	got, err := sink.tally(t.Context(), true)
	if err != nil || got.Requests != 3 || got.Keys != 2 || got.LastNS < before.UnixNano() || got.LastNS > time.Now().UnixNano() {
		t.Errorf("%+v, %v", got, err)
	}
	came, err := sink.arrivals(t.Context())
	if err != nil || len(came) != 2 || came["a"].After(came["b"]) {
		t.Errorf("%v, %v: the first arrival of a key counts", came, err)
	}
	if err := sink.reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := sink.tally(t.Context(), true); err != nil || got != (tally{}) {
		t.Errorf("after a reset: %+v, %v", got, err)
	}
	if err := sink.wait(t.Context(), 1, time.Millisecond); err == nil || !strings.Contains(err.Error(), "0 of 1") {
		t.Errorf("wait for what does not come: %v", err)
	}
}

func TestSummarise(t *testing.T) {
	runs := [][]benchFigure{
		{{"rate", "tasks/s", 100, 400}, {"late", "ms", 3, 0}},
		{{"rate", "tasks/s", 300, 500}, {"late", "ms", 1, 0}},
		{{"rate", "tasks/s", 200, 1000}, {"late", "ms", 2, 0}},
	}
	list := summarise(runs, map[string]benchAim{"rate": {ratio: 0.3}, "late": {below: 2.5}})
	rate, late := list[0], list[1]
	if rate.Value != 200 || rate.Ceiling != 500 || rate.Ratio != 0.25 || *rate.Met {
		t.Errorf("%+v", rate)
	}
	if late.Value != 2 || late.Ceiling != 0 || late.Ratio != 0 || !*late.Met {
		t.Errorf("%+v", late)
	}
}

func TestPercentile(t *testing.T) {
	var list []int
	for i := range 1000 {
		list = append(list, i+1)
	}
	for p, want := range map[float64]int{0.5: 500, 0.9: 900, 0.99: 990, 1: 1000, 0.0001: 1} {
		if got := percentile(list, p); got != want {
			t.Errorf("percentile %v of 1 to 1000 is %d, not %d", p, got, want)
		}
	}
	if got := percentile([]int{7}, 0.5); got != 7 {
		t.Errorf("of one value: %d", got)
	}
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}} {
		if got := median(c.of); got != c.want {
			t.Errorf("median of %v is %v, not %v", c.of, got, c.want)
		}
	}
}

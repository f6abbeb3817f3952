package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"dts/store/rqlite/rqlitetest"
)

// TestBench runs every scenario, small, with a real server and a real sink. They wait more than they work, so
// they run side by side.
func TestBench(t *testing.T) {
	sizes := []string{
		"--tasks", "20", "--spread", "200ms", "--pending", "300", "--drain", "300", "--drain-long", "400",
		"--creates", "200", "--bulk", "10010", "--rate", "20", "--sustain", "2s",
		"--mixed", "300ms", "--commands", "100ms", "--finished", "3000", "--hourly", "40", "--idle", "200ms", "--herd", "300", "--fairness", "500ms", "--hanging", "400", "--big", "3000",
		"--rqlite-tasks", "20", "--rqlite-drain", "300", "--rqlite-creates", "200",
	}
	for _, known := range benchScenarios {
		t.Run(known.name, func(t *testing.T) {
			t.Parallel()
			if err := cannotMeasure(known.name); err != nil {
				t.Skipf("NOT TESTED on this system: %v", err)
			}
			dir := t.TempDir()
			args := slices.Concat([]string{"dts", "bench", "--json", "--dir", dir, "--runs", "1"}, sizes, []string{known.name})
			if known.rqlited > 0 {
				args = append(args, "--rqlited", rqlitetest.Binary(t))
			}
			r := benchReportOf(t, args)
			if len(r.Scenarios) != 1 || r.Machine.Cores < 1 || r.Machine.SQLite == "" || r.Build.Go == "" {
				t.Fatalf("%+v", r)
			}
			checkBenchSection(t, r.Scenarios[0], known)
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func checkBenchSection(t *testing.T, s benchSection, known benchScenario) {
	if len(s.Figures) == 0 || s.Name != known.name || s.About == "" || s.Runs != 1 {
		t.Errorf("%+v", s)
	}
	aimed := 0
	for _, f := range s.Figures {
		t.Logf("%-40s %12.3f %-10s of %12.3f", f.Name, f.Value, f.Unit, f.Ceiling)
		if len(f.Values) != s.Runs || f.Value < 0 || len(f.Ceilings) > 0 && (f.Ceiling <= 0 || len(f.Ceilings) != s.Runs) {
			t.Errorf("%+v", f)
		}
		if len(f.Aims) > 0 {
			aimed++
		}
		for _, g := range known.aims[f.Name] {
			if (g.ratio > 0 || g.ratioBelow > 0) && f.Ceiling == 0 {
				t.Errorf("%s has an aim for a ratio, and no ceiling", f.Name)
			}
		}
	}
	if aimed != len(known.aims) {
		t.Errorf("there are aims for %d figures, and %d figures have one", len(known.aims), aimed)
	}
}

func benchReportOf(t *testing.T, args []string) (r benchReport) {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(args, strings.NewReader(""), &out, &errOut); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errOut)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBenchProfile holds that a profile of the server is written, and that it is one: gzip, of the form of
// runtime/pprof.
func TestBenchProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "cpu.pprof")
	benchReportOf(t, []string{"dts", "bench", "--json", "--dir", dir, "--runs", "1", "--drain", "300", "--cpuprofile", file, "drain"})
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil || !bytes.Contains(b, []byte("nanoseconds")) {
		t.Errorf("%d bytes, %v: not a CPU profile", len(b), err)
	}
}

func TestChooseScenarios(t *testing.T) {
	short, err := chooseScenarios(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chooseScenarios(nil, true)
	if err != nil || len(all) != len(benchScenarios) || len(short) >= len(all) {
		t.Errorf("%d without names, %d of %d with --all, %v", len(short), len(all), len(benchScenarios), err)
	}
	for _, s := range short {
		if s.long {
			t.Errorf("%s is long, and runs without being named", s.name)
		}
	}
	if list, err := chooseScenarios([]string{"drain-400k"}, false); err != nil || len(list) != 1 || !list[0].long {
		t.Errorf("%v, %v", list, err)
	}
}

// TestWithoutRqlited: what needs rqlited is left out with a word, unless it was named.
func TestWithoutRqlited(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", "")
	for _, c := range []struct {
		args  []string
		list  []benchScenario
		left  int
		fails bool
	}{
		{nil, []benchScenario{drainScenario, rqlite1Scenario, rqlite3Scenario}, 1, false},
		{nil, []benchScenario{drainScenario}, 1, false},
		{[]string{"rqlite-1"}, []benchScenario{rqlite1Scenario}, 0, true},
	} {
		var errOut bytes.Buffer
		set := flag.NewFlagSet("", flag.ContinueOnError)
		if err := set.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		list, err := (&app{err: &errOut}).withRqlited(cli.NewContext(nil, set, nil), slices.Clone(c.list), &benchOptions{})
		if (err != nil) != c.fails || err == nil && len(list) != c.left {
			t.Errorf("%v: %d scenarios, %v", c.args, len(list), err)
		}
		if said := strings.Count(errOut.String(), "is left out: there is no rqlited, neither as .cache/rqlited nor on the PATH"); err == nil && said != len(c.list)-c.left {
			t.Errorf("%v: %q", c.args, &errOut)
		}
	}
}

func TestBatchOf(t *testing.T) {
	for _, c := range []struct {
		rows    int
		batches float64
		want    int
	}{{100, 10, 10}, {105, 10, 11}, {3, 100, 1}, {50, 0, 50}} {
		if got := batchOf(c.rows, c.batches); got != c.want {
			t.Errorf("%d rows in %v batches are %d each, not %d", c.rows, c.batches, got, c.want)
		}
	}
}

// TestUsageOf compares what a process is said to use with what it does.
func TestUsageOf(t *testing.T) {
	if runtime.GOOS != "linux" {
		if _, err := usageOf(os.Getpid()); err == nil || !strings.Contains(err.Error(), runtime.GOOS) {
			t.Errorf("%v: does not name the platform", err)
		}
		return
	}
	before, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ballast := make([]byte, 64<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	for start := time.Now(); ; {
		now, err := usageOf(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		grown := now.PeakResident-before.Resident >= 32<<20 && now.Resident > 64<<20
		if grown && now.CPU-before.CPU >= 50*time.Millisecond && now.Switches > 0 {
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("before %+v, now %+v", before, now)
		}
	}
	runtime.KeepAlive(ballast)
	if _, err := usageOf(1 << 30); err == nil {
		t.Error("no error for a process that does not exist")
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
		{[]string{"--all", "drain"}, `--all and the scenario "drain"`},
		{[]string{"sink", "more"}, "takes no arguments"},
		{[]string{"--rqlite-drain", "0"}, "--rqlite-drain: is 0; use 1 to 1000000"},
		{[]string{"--rqlited", "/nowhere/rqlited", "rqlite-1"}, "--rqlited: exec: \"/nowhere/rqlited\""},
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
	list := summarise(runs, map[string][]benchAim{"rate": {{ratio: 0.3}, {ratioBelow: 0.3}, {atLeast: 200}}, "late": {{below: 2.5}, {below: 1.5}}})
	rate, late := list[0], list[1]
	if rate.Value != 200 || rate.Ceiling != 500 || rate.Ratio != 0.25 ||
		!slices.Equal(rate.Aims, []aimed{{"ratio ≥ 0.3", false}, {"ratio ≤ 0.3", true}, {"≥ 200", true}}) {
		t.Errorf("%+v", rate)
	}
	if late.Value != 2 || late.Ceiling != 0 || late.Ratio != 0 || !slices.Equal(late.Aims, []aimed{{"≤ 2.5", true}, {"≤ 1.5", false}}) {
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

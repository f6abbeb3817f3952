package difftest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"dts/sched/cron"
)

// cronerDir is where `make croner` installs croner.
const cronerDir = "../../../.cache/croner"

// croner is a node process that answers questions.
type croner struct {
	in  *json.Encoder
	out *bufio.Scanner
}

func startCroner(t *testing.T) *croner {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "croner, because there is no node in PATH")
	}
	var pin, have struct {
		Dependencies map[string]string
		Version      string
	}
	readJSON(t, "testdata/croner/package.json", &pin)
	if _, err := os.Stat(cronerDir + "/node_modules/croner"); err != nil {
		missing(t, "croner, because it is not in .cache: run make croner, once")
	}
	readJSON(t, cronerDir+"/node_modules/croner/package.json", &have)
	if have.Version != pin.Dependencies["croner"] {
		missing(t, "croner, because .cache has version "+have.Version+" of it, not "+pin.Dependencies["croner"]+": run make croner")
	}
	script, err := filepath.Abs("testdata/croner/runs.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, script)
	cmd.Dir, cmd.Stderr = cronerDir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("node: %v", err)
		}
	})
	return &croner{json.NewEncoder(in), bufio.NewScanner(out)}
}

func readJSON(t *testing.T, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ask returns croner's instants, its error, and how far its zone's clock is ahead of UTC at some instants.
func (c *croner) ask(t *testing.T, q question, at []int64) (runs []int64, refused string, offsets []int64) {
	t.Helper()
	ms := make([]int64, len(at))
	for i := range at {
		ms[i] = at[i] * 1000
	}
	err := c.in.Encode(map[string]any{
		"expr": q.spec.String(), "zone": q.zone.name, "start": q.start.UnixMilli(), "until": q.until * 1000, "count": q.count, "at": ms,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !c.out.Scan() {
		t.Fatalf("node ended: %v", c.out.Err())
	}
	var a struct {
		Runs    []int64
		Error   string
		Offsets []int64
	}
	if err := json.Unmarshal(c.out.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	for i := range a.Runs {
		a.Runs[i] /= 1000
	}
	return a.Runs, a.Error, a.Offsets
}

// TestCroner compares dts with croner, over the years in which both know the zones.
func TestCroner(t *testing.T) {
	node := startCroner(t)
	n, seed := cases(t)
	a, c := newAsker(t, seed+1, 1973, 2140), newTally()
	for c.total < n && c.bad < 20 {
		q := a.ask()
		q.start = q.start.Truncate(time.Millisecond) // croner knows no more
		s, ok := parse(t, q, cron.Options{})
		if !ok {
			continue
		}
		c.total++
		got := ours(s, q)
		theirs, refused, offsets := node.ask(t, q, got)
		why := cronerRefuses(q.spec)
		switch {
		case refused != "" && why != "":
			c.rules[why]++
		case refused != "" || why != "":
			c.bad++
			t.Errorf("%s: croner says %q, but it should %q", q, refused, why)
		case slices.Equal(got, theirs):
			c.same++
		default:
			if why = explain(q, dtsRules(q.spec), cronerRules, theirs); why == "" && otherZone(q.zone, got, offsets) {
				why = "other zone data"
			}
			if why == "" {
				c.unexplained(t, q, got, theirs)
			} else {
				c.rules[why]++
			}
		}
	}
	c.print(t, "croner")
}

// otherZone reports whether croner's clock shows something else than ours at an instant of ours.
func otherZone(z *zone, at, offsets []int64) bool {
	for i := range at {
		if i < len(offsets) && z.offset(at[i]) != offsets[i] {
			return true
		}
	}
	return false
}

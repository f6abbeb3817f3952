package clitest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"dts/sched/cron"
)

var update = flag.Bool("update", false, "write what the program prints into the examples of docs/time.md")

// TestTimeExamples runs the examples of docs/time.md. In a console block each line after `$` is a command, and what
// it prints follows. In a schedule block the first line is JSON and an instant, and the runs after it follow.
func TestTimeExamples(t *testing.T) {
	const name = "../../../docs/time.md"
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var block []string
	kind, examples := "", 0
	for line := range strings.Lines(string(doc)) {
		fence, opens := strings.CutPrefix(line, "```")
		switch {
		case !opens && kind == "":
			out.WriteString(line)
		case !opens:
			block = append(block, strings.TrimSuffix(line, "\n"))
		case kind == "":
			kind, block = strings.TrimSpace(fence), nil
			out.WriteString(line)
		default:
			text, n := rerun(t, kind, block)
			out.WriteString(text + line)
			kind, examples = "", examples+n
		}
	}
	if examples < 30 {
		t.Errorf("docs/time.md has %d examples, want at least 30", examples)
	}
	if *update {
		if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// rerun returns a block with what its examples print now, and how many they are.
func rerun(t *testing.T, kind string, block []string) (text string, examples int) {
	t.Helper()
	run, begins := runCommand, "$ "
	switch kind {
	case "console":
	case "schedule":
		run, begins = runSchedule, "{"
	default:
		return lines(block), 0
	}
	for i := 0; i < len(block); examples++ {
		end := i + 1
		for end < len(block) && !strings.HasPrefix(block[end], begins) {
			end++
		}
		want, blank := block[i+1:end], ""
		if len(want) > 0 && want[len(want)-1] == "" {
			want, blank = want[:len(want)-1], "\n"
		}
		if !strings.HasPrefix(block[i], begins) {
			t.Fatalf("a %s block has %q, which should begin %q", kind, block[i], begins)
		}
		got := run(t, block[i], len(want))
		if wanted := lines(want); got != wanted && !*update {
			t.Errorf("docs/time.md: %s\n prints\n%s is written\n%s", block[i], got, wanted)
		}
		text += block[i] + "\n" + got + blank
		i = end
	}
	return text, examples
}

func lines(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "\n") + "\n"
}

// away is how far away an instant is, which the examples leave out.
var away = regexp.MustCompile(`(?m)^(  \w{3} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+)  .*$`)

func runCommand(t *testing.T, line string, _ int) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", line[2:])
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TZ=Europe/Berlin", "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if _, refused := err.(*exec.ExitError); err != nil && !refused {
		t.Fatal(err)
	}
	return away.ReplaceAllString(string(out), "$1")
}

// runSchedule answers with as many runs as are written, three for none.
func runSchedule(t *testing.T, line string, count int) string {
	t.Helper()
	text, after, ok := strings.Cut(line, "} after ")
	var s struct {
		Cron       string `json:"cron"`
		TimeZone   string `json:"time_zone"`
		DSTGap     string `json:"dst_gap"`
		DSTOverlap string `json:"dst_overlap"`
	}
	d := json.NewDecoder(strings.NewReader(text + "}"))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil || !ok {
		t.Fatalf("%q: %v", line, err)
	}
	loc, err := cron.LoadLocation(s.TimeZone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", after, loc)
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := cron.Parse(s.Cron, cron.Options{Location: loc, Gap: cron.GapPolicy(s.DSTGap), Overlap: cron.OverlapPolicy(s.DSTOverlap)})
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for range max(count, 1) {
		at = schedule.Next(at)
		out += fmt.Sprintf("  %s\n", at.Format("Mon 2006-01-02 15:04:05 MST"))
	}
	return out
}

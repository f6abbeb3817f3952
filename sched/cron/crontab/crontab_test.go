package crontab

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dts/sched/cron"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const fixtures = "../../../testdata/crontabs"

// golden is what one fixture yields.
type golden struct {
	Entry Entry
	Next  []time.Time // from 2026-03-01T00:00:00Z, read in Europe/Berlin
}

func TestFixtures(t *testing.T) {
	berlin, err := cron.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	files, err := os.ReadDir(fixtures)
	if err != nil {
		t.Fatal(err)
	}
	got, read := map[string][]golden{}, 0
	for _, f := range files {
		if f.Name() == "README.md" {
			continue
		}
		read++
		content, err := os.ReadFile(filepath.Join(fixtures, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		wantKind := System
		if f.Name() == "john" {
			wantKind = User // every line of it is a comment
		}
		if kind := DetectKind(content, f.Name()); kind != wantKind {
			t.Errorf("%s: DetectKind says %s, want %s", f.Name(), kind, wantKind)
		}
		entries, bad, err := Parse(strings.NewReader(string(content)), f.Name(), System)
		if err != nil || len(bad) > 0 {
			t.Fatalf("%s: %v, %v", f.Name(), err, bad)
		}
		got[f.Name()] = []golden{}
		for _, e := range entries {
			s, err := cron.Parse(e.Expr, cron.Options{Location: berlin})
			if err != nil {
				t.Fatal(err)
			}
			g := golden{Entry: e}
			for at := start; len(g.Next) < 3; {
				at = s.Next(at)
				g.Next = append(g.Next, at)
			}
			want := bruteForce(t, e.Expr, start.In(berlin), 3)
			for i := range want {
				if !g.Next[i].Equal(want[i]) {
					t.Errorf("%s:%d: %q: instant %d is %s, the clock says %s", f.Name(), e.Line, e.Expr, i+1, g.Next[i], want[i])
				}
			}
			got[f.Name()] = append(got[f.Name()], g)
		}
	}
	if read != 10 {
		t.Errorf("read %d fixtures, want 10", read)
	}
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	const path = "testdata/entries.golden.json"
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("entries differ from %s (-want +got):\n%s", path, diff)
	}
}

// bruteForce looks at the clock minute by minute. It knows plain fields alone, no DST, and ANDs
// the days, which is right when one of them is `*`.
func bruteForce(t *testing.T, expr string, at time.Time, n int) []time.Time {
	f := strings.Fields(expr)
	if f[2] != "*" && f[4] != "*" {
		t.Fatalf("%q is beyond the brute force", expr)
	}
	var out []time.Time
	for len(out) < n {
		at = at.Add(time.Minute)
		weekday := int(at.Weekday())
		if shows(t, f[0], 0, 59, at.Minute()) && shows(t, f[1], 0, 23, at.Hour()) && shows(t, f[2], 1, 31, at.Day()) &&
			shows(t, f[3], 1, 12, int(at.Month())) && (shows(t, f[4], 0, 6, weekday) || weekday == 0 && f[4] == "7") {
			out = append(out, at)
		}
	}
	return out
}

// shows reports whether field allows value.
func shows(t *testing.T, field string, lo, hi, value int) bool {
	atoi := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for item := range strings.SplitSeq(field, ",") {
		a, b, step := lo, hi, 1
		base, stepText, stepped := strings.Cut(item, "/")
		if stepped {
			step = atoi(stepText)
		}
		if from, to, ranged := strings.Cut(base, "-"); ranged {
			a, b = atoi(from), atoi(to)
		} else if base != "*" {
			a = atoi(base)
			b = a
		}
		if value >= a && value <= b && (value-a)%step == 0 {
			return true
		}
	}
	return false
}

func TestParse(t *testing.T) {
	const text = `# a comment
  # an indented one

PATH = /usr/local/bin:/usr/bin
 GREETING='  hello $USER '
"QUOTED"="a # b"
0 5 * * 1	tar -zcf /var/backups/home.tgz /home/
SHELL=/bin/bash
MAILTO=ops@example.com
CRON_TZ=America/New_York
LOGNAME=mallory
TZ=Asia/Tokyo
@reboot	/usr/bin/start --now
*/15 8-18 * jan-jun mon-fri date +\%F > /tmp/day\%.txt
MAILTO=""
0 0 1 * * mail -s hi joe%Joe,%%Where are your kids?\%%
-5 0 * * * quiet
1 2 3 4 5 cmd%
*  *	*  * *  spaced   out `
	entries, bad, err := Parse(strings.NewReader(text), "tab", User)
	if err != nil || len(bad) > 0 {
		t.Fatalf("%v, %v", err, bad)
	}
	early := map[string]string{"PATH": "/usr/local/bin:/usr/bin", "GREETING": "  hello $USER ", "QUOTED": "a # b"}
	late := map[string]string{"PATH": "/usr/local/bin:/usr/bin", "GREETING": "  hello $USER ", "QUOTED": "a # b", "TZ": "Asia/Tokyo"}
	want := []Entry{
		{Line: 7, Expr: "0 5 * * 1", Command: "tar -zcf /var/backups/home.tgz /home/", Shell: "/bin/sh", Env: early},
		{Line: 13, Expr: "@reboot", Command: "/usr/bin/start --now", MailTo: "ops@example.com"},
		{Line: 14, Expr: "*/15 8-18 * jan-jun mon-fri", Command: "date +%F > /tmp/day%.txt", MailTo: "ops@example.com"},
		{Line: 16, Expr: "0 0 1 * *", Command: "mail -s hi joe", Stdin: "Joe,\n\nWhere are your kids?%\n", NoMail: true},
		{Line: 17, Expr: "5 0 * * *", Command: "quiet", NoMail: true},
		{Line: 18, Expr: "1 2 3 4 5", Command: "cmd", NoMail: true},
		{Line: 19, Expr: "* * * * *", Command: "spaced   out ", NoMail: true},
	}
	lines := strings.Split(text, "\n")
	for i := range want {
		want[i].Raw = lines[want[i].Line-1]
		if i > 0 {
			want[i].Shell, want[i].TimeZone, want[i].Env = "/bin/bash", "America/New_York", late
		}
	}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct {
		kind       Kind
		text, want string
	}{
		{User, "61 * * * * cmd", `tab:1: minute field "61": must be 0-59`},
		{User, "\n\n* 22-4 * * * cmd", `tab:3: hour field "22-4": the range runs backwards; write 22-23,0-4`},
		{User, "* * * cmd", `tab:1: the line has 4 of the 5 fields`},
		{User, "* * * *", `tab:1: the line has 4 of the 5 fields minute hour day-of-month month day-of-week, and it is no NAME=value`},
		{User, "* * * * *", "tab:1: the command is missing"},
		{User, "* * * * * %in", "tab:1: the command is missing before %"},
		{User, "0 0 30 2 * cmd", `tab:1: day-of-month field "30": no such day ever comes`},
		{User, "5/15 * * * * cmd", `tab:1: field "5/15": crons disagree about a step after one number; write 5, or a range as in 5-N/15`},
		{User, "H * * * * cmd", `tab:1: field "H": L, W and H are not in crontab(5)`},
		{User, "0 0 L * * cmd", `tab:1: field "L": L, W and H are not in crontab(5)`},
		{User, "0 0 * * 5#3 cmd", `tab:1: field "5#3": ?, # and H(…) are not in crontab(5)`},
		{User, "0 0 ? * 5 cmd", `tab:1: field "?": ?, # and H(…) are not in crontab(5)`},
		{User, "@every 5m cmd", `tab:1: "@every" is not in crontab(5)`},
		{User, "@reboot", "tab:1: the command is missing"},
		{System, "* * * * * root", "tab:1: the command is missing"},
		{System, "* * * * * /bin/true", `tab:1: user field "/bin/true": must be a user name`},
		{System, "@daily root:wheel cmd", `tab:1: user field "root:wheel": must be a user name`},
		{User, "A=", `tab:1: A has no value; write A="" for an empty one`},
		{User, "A='x", "tab:1: the quote is not closed"},
		{User, "A='x' y", "tab:1: there is text after the closing quote"},
		{User, "1A=x", `tab:1: "1A" is not a variable name`},
		{User, "SHELL=bash", `tab:1: SHELL "bash": must be an absolute path`},
		{User, "CRON_TZ=Mars/Base", `tab:1: CRON_TZ: time zone "Mars/Base": is not a known IANA zone`},
		{User, "RANDOM_DELAY=10", "tab:1: RANDOM_DELAY is not carried over"},
		{User, `* * * * * date +\\%F`, `tab:1: \\% means different things to different crons`},
		{User, "* * * * * cmd\r\n", "tab:1: the line ends in a carriage return"},
		{User, "* * * * * a\x00b", `tab:1: the line has a control character ('\x00')`},
		{User, "* * * * * \xff", "tab:1: the line is not valid UTF-8"},
		{User, "* * * * * " + strings.Repeat("x", 999), "tab:1: the command has 999 bytes, the limit is 998"},
		{User, "A=" + strings.Repeat("x", 1000), "tab:1: the line has 1002 bytes, the limit for a variable is 1000"},
	} {
		entries, bad, err := Parse(strings.NewReader(tt.text), "tab", tt.kind)
		if err != nil || len(entries) != 0 || len(bad) != 1 || !strings.HasPrefix(bad[0].Error(), tt.want) {
			t.Errorf("%.60q: entries %v, refused %v, error %v\nwant %s", tt.text, entries, bad, err, tt.want)
		}
	}
}

// TestRefusedVariable: what stands below a wrong zone must not run in another one.
func TestRefusedVariable(t *testing.T) {
	const text = "0 1 * * * a\nCRON_TZ=Nowhere\n0 2 * * * b\nCRON_TZ=Europe/Berlin\n0 3 * * * c\n"
	entries, bad, err := Parse(strings.NewReader(text), "tab", User)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 || entries[0].Line != 1 || entries[1].Line != 5 || entries[1].TimeZone != "Europe/Berlin" {
		t.Errorf("entries: %+v", entries)
	}
	if len(bad) != 2 || bad[1].Error() != "tab:3: CRON_TZ was refused on line 2, and this line depends on it" {
		t.Errorf("refused: %v", bad)
	}
}

func TestWholeFile(t *testing.T) {
	if _, _, err := Parse(strings.NewReader(strings.Repeat("#", MaxFile+1)), "tab", User); err == nil {
		t.Error("a file over the limit: no error")
	}
	_, bad, err := Parse(strings.NewReader(strings.Repeat("x\n", 2*MaxErrors)), "tab", User)
	if err == nil || len(bad) != MaxErrors {
		t.Errorf("a file of nonsense: %d lines refused, error %v", len(bad), err)
	}
	broken := errors.New("disk on fire")
	if _, _, err := Parse(failing{broken}, "tab", User); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestDetectKind(t *testing.T) {
	for _, tt := range []struct {
		path, text string
		want       Kind
	}{
		{"/etc/crontab", "", System},
		{"/etc/cron.d/php", "", System},
		{"backup/etc/cron.d/php", "", System},
		{"/var/spool/cron/crontabs/joe", "* * * * * root cmd", User},
		{"x", "* * * * * root cmd", System},
		{"x", "@daily backup /usr/bin/backup\nA=b\n# c\n0 1 * * * root run", System},
		{"x", "* * * * * echo hi", User},
		{"x", "* * * * * backup now", User},
		{"x", "* * * * * /usr/bin/backup now", User},
		{"x", "* * * * * root cmd\n* * * * * /bin/true", User},
		{"x", "* * * * * ./backup.sh", User},
		{"x", "* * * * * root", User},
		{"x", "", User},
	} {
		if got := DetectKind([]byte(tt.text), tt.path); got != tt.want {
			t.Errorf("DetectKind(%q, %q) = %s, want %s", tt.text, tt.path, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(fixtures + "/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content), true)
	}
	f.Add("A='b\n\"x y\"=z\n@reboot c%d\\%\n-*/5 * * * * e\\\\%", false)
	f.Fuzz(func(t *testing.T, text string, system bool) {
		kind := User
		if system {
			kind = System
		}
		DetectKind([]byte(text), "file")
		entries, bad, err := Parse(strings.NewReader(text), "file", kind)
		if err != nil && len(text) <= MaxFile && len(bad) < MaxErrors {
			t.Fatal(err)
		}
		lines := strings.Split(text, "\n")
		for _, e := range entries {
			if e.Raw != lines[e.Line-1] || e.Command == "" || (e.User != "") != system || e.Shell == "" {
				t.Fatalf("entry %+v", e)
			}
			if _, err := cron.Parse(e.Expr, cron.Options{}); err != nil && !errors.Is(err, cron.ErrReboot) {
				t.Fatalf("entry %+v: %v", e, err)
			}
		}
		for _, e := range bad {
			if e.Line < 1 || e.Line > len(lines) || strings.Contains(e.Error(), "\n") {
				t.Fatalf("refused %+v", e)
			}
		}
	})
}

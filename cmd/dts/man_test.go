package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// macros are the requests that the pages use. Any other line that begins with a dot or an apostrophe would be lost.
var macros = regexp.MustCompile(`^\.(TH|SH|SS|PP|TP|B|RS|RE|nf|fi|nh|ad)\b`)

// TestManuals: each command has a page, which names all that its help names, and of which no line is read as a request.
func TestManuals(t *testing.T) {
	dir := t.TempDir()
	a := &app{out: os.Stdout, err: os.Stderr, now: time.Now, loc: time.UTC}
	if err := writeManuals(a.commands(), dir); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range visible(a.commands().Commands) {
		b, err := os.ReadFile(filepath.Join(dir, "dts-"+cmd.Name+".1"))
		if err != nil {
			t.Fatal(err)
		}
		page := string(b)
		if strings.Contains(page, "DESCRIPTION\n.SH") {
			t.Errorf("dts-%s has an empty description", cmd.Name)
		}
		_, way, _ := strings.Cut(page, ".SH SYNOPSIS\n.nf\n")
		way, _, _ = strings.Cut(way, ".fi\n")
		for line := range strings.Lines(way) {
			if n := len([]rune(strings.NewReplacer(`\-`, "-", `\[u2026]`, "…").Replace(line))); n > 73 {
				t.Errorf("dts-%s: a line of its synopsis has %d columns and does not fit a terminal: %s", cmd.Name, n, line)
			}
		}
		for line := range strings.Lines(page) {
			if (line[0] == '.' || line[0] == '\'') && !macros.MatchString(line) {
				t.Errorf("dts-%s: %q is read as a request", cmd.Name, line)
			}
		}
		want := []string{"\n.SH EXIT STATUS\n", roff(cmd.Usage)}
		for _, f := range append(cmd.Flags, flagsBelow(cmd)...) {
			want = append(want, bold(dashes(f.Names()[0])))
		}
		for _, sub := range visible(cmd.Subcommands) {
			want = append(want, "\n.SS dts "+roff(cmd.Name+" "+sub.Name)+":")
		}
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("dts-%s has no %q", cmd.Name, w)
			}
		}
		if main, err := os.ReadFile(filepath.Join(dir, "dts.1")); err != nil || !strings.Contains(string(main), bold("dts-"+cmd.Name)) {
			t.Errorf("dts(1) has no dts-%s; %v", cmd.Name, err)
		}
	}
}

// TestRoff: what means something to roff stands for itself, and what is copied from a page is ASCII.
func TestRoff(t *testing.T) {
	m := &manual{}
	m.prose(".hidden 'quoted' \\n\n\nUse:\n   '%s\\t' --all ~ ^ `x` … -")
	const want = ".PP\n\\&.hidden \\(aqquoted\\(aq \\en\n.PP\n.nf\nUse:\n.RS 4\n\\(aq%s\\et\\(aq \\-\\-all \\(ti \\(ha \\(gax\\(ga \\[u2026] \\-\n.RE\n.fi\n"
	if got := m.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestManualExits: dts ci exits with what its page says, and not with what the others do.
func TestManualExits(t *testing.T) {
	a := &app{out: os.Stdout, err: os.Stderr, now: time.Now, loc: time.UTC}
	page := commandManual(find(a.commands().Commands, "ci"))
	_, exits, _ := strings.Cut(page, ".SH EXIT STATUS\n")
	if !strings.Contains(exits, bold("1 to 100")) || !strings.Contains(exits, bold("125")) || strings.Contains(exits, "no server answers") {
		t.Errorf("the page of dts ci says of its exit codes\n%s", exits)
	}
}

func TestSplitExamples(t *testing.T) {
	rest, examples := splitExamples("One.\n\nExamples:\n   dts a\n   dts b\n\nTwo.")
	if rest != "One.\n\nTwo." || examples != "   dts a\n   dts b" {
		t.Errorf("%q and %q", rest, examples)
	}
}

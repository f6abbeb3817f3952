package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// TestComplete: commands, subcommands and flags where they can stand; nothing, which means files, where a file or a value can.
func TestComplete(t *testing.T) {
	t.Setenv("DTS_DATA", t.TempDir()) // where no server runs
	t.Setenv("DTS_CONFIG", "")
	t.Setenv("HOME", t.TempDir())
	tests := []struct{ line, want string }{
		{"ap", "apply"},
		{"ver", "version"},
		{"hel", "help"},
		{"help ap", "apply"},
		{"help queue re", "resume"},
		{"help -", ""},
		{"nonsense ", ""},
		{"man ap", "apply"},
		{"completion ", "bash zsh fish"},
		{"calendar ", "ls show add rm next"},
		{"calendar add --ho", "--holidays"},
		{"queue set --r", "--rate --retries"},
		{"queue set mail --bu", "--burst"},
		{"add --cr", "--cron"},
		{"add --cron @daily --tim", "--timeout"},
		{"add --cron ", ""},
		{"add --cron --tim", ""}, // the value of --cron, whatever it looks like
		{"add --ping --gr", "--grace"},
		{"add -- --", ""},
		{"add -- ls ", ""},
		{"check ", ""},
		{"check --sch", "--schema"},
		{"apply tasks.yaml --pr", "--prune"},
		{"version ", "--json --help"},
		{"--data /tmp ver", "version"},
		{"show x", ""},
		{"deps a", "add"},
		{"deps rm a", ""},
	}
	for _, x := range tests {
		a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, now: time.Now, loc: time.UTC, given: map[string]bool{}}
		var got []string
		for _, w := range a.complete(a.commands(), strings.Split(x.line, " ")) {
			got = append(got, w.word)
		}
		if s := strings.Join(got, " "); s != x.want {
			t.Errorf("dts %s: %q, want %q", x.line, s, x.want)
		}
	}
}

// TestCandidateLine: each shell takes a word as it is, whatever characters it has.
func TestCandidateLine(t *testing.T) {
	w := candidate{"a b:c$(d)", "what it is"}
	for shell, want := range map[string]string{"bash": `a\ b:c\$\(d\)`, "zsh": `a b\:c$(d):what it is`, "fish": "a b:c$(d)\twhat it is"} {
		if got := w.line(shell); got != want {
			t.Errorf("%s: %q, want %q", shell, got, want)
		}
	}
}

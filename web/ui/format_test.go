package ui

import (
	"testing"
	"time"

	"dts"
)

func TestFormat(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{duration(0), "0 ms"},
		{duration(120 * time.Microsecond), "0.12 ms"},
		{duration(1234 * time.Microsecond), "1.2 ms"},
		{duration(999 * time.Millisecond), "999 ms"},
		{duration(1 * time.Second), "1 s"},
		{duration(9999 * time.Millisecond), "9.99 s"},
		{duration(59_990 * time.Millisecond), "59.9 s"},
		{duration(60 * time.Second), "1 min"},
		{duration(125 * time.Second), "2 min 5 s"},
		{duration(26 * time.Hour), "1 d 2 h"},
		{duration(-time.Second), "-1 s"},
		{lateness(0), "on time"},
		{lateness(120), "0.12 ms late"},
		{lateness(90_000_000), "1 min 30 s late"},
		{relative(testNow, testNow), "now"},
		{relative(testNow.Add(3*time.Minute), testNow), "in 3 min"},
		{relative(testNow.Add(-3*time.Minute-5*time.Second), testNow), "3 min ago"},
		{relative(testNow.Add(-5*time.Second), testNow), "5 s ago"},
		{relative(testNow.Add(-26*time.Hour), testNow), "1 d 2 h ago"},
		{relative(testNow.Add(40*24*time.Hour+time.Hour), testNow), "in 40 days"},
		{relative(testNow.AddDate(5, 0, 1), testNow), "in 5 years"},
		{byteSize(0), "0 B"},
		{byteSize(1023), "1023 B"},
		{byteSize(1024), "1 KiB"},
		{byteSize(1<<20 - 1), "1 MiB"},
		{byteSize(3 << 29), "1.5 GiB"},
		{clip("héllo", 3), "hél…"},
		{clip("abc", 3), "abc"},
		{sentence("The time", "is missing"), "The time is missing"},
		{sentence("The time", "it broke"), "It broke"},
		{sentence("", ""), ""},
		{commandLineOf("a b", "", "it's", "x=1"), `'a b' '' 'it'\''s' x=1`},
		{targetSummary(dts.Spec{TargetType: dts.Backup, TargetConfig: []byte(`{"dir":"/backup"}`)}), "backup to /backup"},
		{dts.SafeURL("https://h/p?a=1&api_key=zzz&b"), "https://h/p?a=1&api_key=hidden&b"},
		{dts.SafeURL("https://h/%zz"), dts.Masked},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func commandLineOf(argv ...string) string { return targetSummary(command(argv...)) }

// TestTitleCannotTurnRound: a name with an override in it would look like another one, and turn round what follows.
func TestTitleCannotTurnRound(t *testing.T) {
	got := taskTitle(dts.Spec{Name: "report \u202egnp.exe \u2067x\u2069 \u0639\u0631\u0628"})
	if want := "report \uFFFDgnp.exe \uFFFDx\uFFFD \u0639\u0631\u0628"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

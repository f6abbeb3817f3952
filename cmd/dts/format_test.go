package main

import (
	"strings"
	"testing"
	"time"

	"dts"
)

func TestFormat(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ got, want string }{
		{span(0), "0 s"}, {span(120 * time.Microsecond), "0.12 ms"}, {span(3400 * time.Microsecond), "3.4 ms"},
		{span(910 * time.Millisecond), "910 ms"}, {span(1234 * time.Millisecond), "1.23 s"}, {span(42 * time.Second), "42 s"},
		{span(5 * time.Minute), "5m"}, {span(-time.Hour), "-1h"},
		{distance(26*time.Hour + time.Minute), "1d 2h"}, {distance(40 * dayLength), "40d"}, {distance(800 * dayLength), "2 years"},
		{relative(now.Add(4*time.Minute), now), "in 4m"}, {relative(now.Add(-2*time.Minute-10*time.Second), now), "2m ago"},
		{relative(now.Add(-30*time.Second), now), "30s ago"}, {relative(now, now), "now"}, {relative(time.Time{}, now), "–"},
		{late(120), "0.12 ms late"}, {late(-5), "on time"},
		{size(1536), "1.5 KiB"}, {size(12), "12 B"}, {count(1, "job"), "1 job"}, {count(2, "job"), "2 jobs"},
		{clean("a\x1b[31mb\u202ec"), "a\uFFFD[31mb\uFFFDc"}, {clip("abcdef", 4), "abc…"},
		{words([]string{"sh", "-c", "echo it's", ""}), `sh -c 'echo it'\''s' ''`},
		{shellName("cd / && run-parts --report /etc/cron.daily"), "run-parts"},
		{shellName("[ -x /usr/lib/php/sessionclean ] && if [ ! -d /run ]; then /usr/lib/php/sessionclean; fi"), "sessionclean"},
		{shellName("test -x x && perl -e 'sleep 5' && certbot -q renew"), "certbot"},
		{shellName("TZ=UTC nice backup --all"), "backup"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	for want, s := range map[string]dts.Spec{
		"backup.sh":        {TargetType: dts.Command, TargetConfig: []byte(`{"argv":["/srv/backup.sh","-a"]}`)},
		"example.com/hook": {TargetType: dts.HTTPCallback, TargetConfig: []byte(`{"url":"https://example.com/hook/?k=secret"}`)},
		"make":             {TargetType: dts.Command, TargetConfig: []byte(`{"shell":"make report | mail -s Report boss"}`)},
	} {
		if got := nameOf(&s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	r, err := backoff("1s..10m")
	if err != nil || r.Backoff != dts.Exponential || r.BaseDelayMS != 1000 || r.MaxDelayMS != 600_000 {
		t.Errorf("%+v %v", r, err)
	}
	r, err = backoff("10s, 1m,5m")
	if err != nil || r.Backoff != dts.List || len(r.DelaysMS) != 3 || r.DelaysMS[2] != 300_000 {
		t.Errorf("%+v %v", r, err)
	}
	for _, s := range []string{"", "fast", "1s..", "1s,,2s"} {
		if _, err := backoff(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestSocketPath(t *testing.T) {
	if got := socketPath("/srv/dts"); got != "/srv/dts/dts.sock" {
		t.Error(got)
	}
	long := "/srv/" + strings.Repeat("x", 120)
	got := socketPath(long)
	if len(got) > 103 || got != socketPath(long) || got == socketPath(long+"y") {
		t.Errorf("%s", got)
	}
}

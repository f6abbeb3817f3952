package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"dts"
)

// pingJudged is what a judgement takes at most: a job that takes less has reported no start, or nothing at all.
const pingJudged = 50 * time.Millisecond

// shownPings is how many reports dts show prints.
const shownPings = 5

// printPingUse says how a job reports; ref is what dts show is asked for.
func (a *app) printPingUse(at, ref string) {
	if at == "" {
		a.printf("%s\n", a.dim("When the server runs, dts show "+words([]string{clean(ref)})+" prints the URL that the job calls."))
		return
	}
	a.printf("\nAt the end of the job, when it went well:\n  %s\n", curl(at))
	a.printf("Or around it, so that how long it takes and how it fails is known, too:\n  %s\n  %s\n  %s\n",
		curl(at+"/start"), "your-job; code=$?", curl(at+"/$code"))
	if onlyHere(at) {
		a.notef("this URL works on this machine only; for jobs elsewhere let the server listen on another address, or give it --public-url")
	}
}

// curl is how a shell calls a ping URL: it gives up after a while, and tries again.
func curl(at string) string { return "curl -fsS -m 10 --retry 5 -o /dev/null " + at }

// onlyHere reports whether a URL leads nowhere from other machines.
func onlyHere(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// pingTable prints the newest reports of a job.
func (a *app) pingTable(list []*dts.PingRecord, loc *time.Location) {
	if len(list) == 0 {
		a.printf("\n%s\n", a.dim("No ping has come yet."))
		return
	}
	var rows [][]string
	for _, p := range list[:min(len(list), shownPings)] {
		counts := "no run"
		if !p.ScheduledAt.IsZero() {
			counts = p.ScheduledAt.In(loc).Format("2006-01-02 15:04:05")
		}
		rows = append(rows, []string{p.ReceivedAt.In(loc).Format("2006-01-02 15:04:05"), pingWords(p), counts, p.Source, clip(clean(strings.Join(strings.Fields(p.Body), " ")), 60)})
	}
	a.printf("\n")
	a.table([]string{"PING", "REPORTS", "COUNTS FOR", "FROM", "SAYS"}, rows, 4)
}

// pingWords says what a ping reports.
func pingWords(p *dts.PingRecord) string {
	if p.ExitCode != nil {
		return fmt.Sprintf("exit code %d", *p.ExitCode)
	}
	return strings.ToLower(string(p.Kind))
}

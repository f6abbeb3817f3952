package ui

import (
	"fmt"
	"net/http"

	"dts"
	"dts/web/auth"
)

// shownPings is how many reports of a job the page shows.
const shownPings = 10

// pingsView is what the page of a PING says of its job.
type pingsView struct {
	URL  string
	Rows []pingRow
}

type pingRow struct {
	*dts.PingRecord
	Class, Words string // of what it reports
	Late         bool   // it came when its run had been judged
}

// viewPings returns nil where dts runs the target itself.
func (h *handler) viewPings(r *http.Request, p auth.Principal, rt *dts.RecurringTask) (*pingsView, error) {
	if rt.TargetType != dts.Ping {
		return nil, nil
	}
	list, err := h.Store.Pings(r.Context(), p.TenantID, rt.ID, shownPings)
	if err != nil {
		return nil, err
	}
	v := &pingsView{URL: h.PingURL(r, rt.ID)}
	target, _ := rt.Ping() // one that another version has stored is shown all the same
	for _, x := range list {
		row := pingRow{PingRecord: x}
		// With a longest time the start decides until when the end may come; which start that was is not known here.
		row.Late = !x.ScheduledAt.IsZero() && target.MaxRuntimeSeconds == 0 && x.ReceivedAt.After(x.ScheduledAt.Add(target.Grace()))
		switch x.Kind {
		case dts.PingStart:
			row.Class, row.Words = "running", "start"
		case dts.PingSuccess:
			row.Class, row.Words = "success", "success"
		default:
			row.Class, row.Words = "failed", "failure"
		}
		if x.ExitCode != nil {
			row.Words = fmt.Sprintf("exit code %d", *x.ExitCode)
		}
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

// pingText says when the job of a PING must report.
func pingText(s dts.Spec) string {
	t, err := s.Ping()
	if err != nil {
		return ""
	}
	text := "within " + duration(t.Grace()) + " after each instant"
	if t.MaxRuntime() > 0 {
		text += ", or within " + duration(t.MaxRuntime()) + " after it has reported its start"
	}
	return text
}

package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"dts"
)

// PingsAnswer answers GET /recurring-tasks/{id}/pings.
type PingsAnswer struct {
	URL   string            `json:"url" doc:"what the job calls; whoever knows it can report in its name"`
	Items []*dts.PingRecord `json:"items" doc:"the newest 100 at most, newest first"`
}

func (h *Handler) listPings(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	r, err := h.Store.RecurringTask(c, c.p.TenantID, id)
	if err != nil {
		return nil, err
	}
	if r.TargetType != dts.Ping {
		return nil, dts.Errorf(dts.ErrConflict, "the recurring task is a %s, which dts runs itself; only a PING has a ping URL", r.TargetType)
	}
	list, err := h.Store.Pings(c, c.p.TenantID, id, dts.MaxPings)
	if err != nil {
		return nil, err
	}
	return PingsAnswer{URL: h.PingURL(c.r, id), Items: append([]*dts.PingRecord{}, list...)}, nil
}

// pingRoutes are what jobs call, for the document. Package pings serves them: their URL is all the credential they need, GET and
// HEAD do the same, and they are not under /v1.
func pingRoutes() []route {
	key := param{"key", "path", "of the recurring task's ping URL", text("")}
	limited := []int{http.StatusNotFound, http.StatusTooManyRequests}
	report := func(path, id, summary string, more ...param) route {
		return route{method: "POST", path: "/ping/{key}" + path, id: id, tag: "pings", summary: summary, params: append([]param{key}, more...),
			status: http.StatusOK, media: "text/plain", errors: limited, open: true}
	}
	return []route{
		report("", "ping", "A job that dts does not run has ended well. What is sent along becomes the run's output; GET and HEAD do the same"),
		report("/start", "ping-start", "It begins"),
		report("/fail", "ping-fail", "It has failed"),
		report("/{exit_code}", "ping-exit-code", "It has ended with this exit code; 0 is a success",
			param{"exit_code", "path", "", &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &mostExitCode}}),
	}
}

var least, mostExitCode = 0.0, 255.0

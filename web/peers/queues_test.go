package peers

import (
	"net/http"
	"testing"
	"time"

	"dts"
)

// TestSuggestions: what comes into a queue on all servers counts, and a server that does not answer holds nobody up.
func TestSuggestions(t *testing.T) {
	_, n := servers(t, "n1", "n2", "n3")
	want := func(busy int) {
		t.Helper()
		list, err := n[0].router.Queues(ctx, dts.DefaultTenant)
		if err != nil || len(list) != 2 || list[0].Suggested != busy || list[1].Suggested != 0 {
			t.Errorf("%+v, %v; want %d", list, err, busy)
		}
	}
	want(9)
	if q, err := n[1].router.PauseQueue(ctx, dts.DefaultTenant, "busy", "why"); err != nil || q.Suggested != 9 || q.PauseNote != "why" {
		t.Errorf("%+v, %v", q, err)
	}
	if q, err := n[1].router.ResumeQueue(ctx, dts.DefaultTenant, "idle"); err != nil || q.Suggested != 0 {
		t.Errorf("%+v, %v", q, err)
	}
	if q, err := n[2].router.Queue(ctx, dts.DefaultTenant, "busy"); err != nil || q.Suggested != 9 {
		t.Errorf("%+v, %v", q, err)
	}
	hang := make(chan struct{})
	defer close(hang)
	n[2].set(func() {
		n[2].before = func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return false
		}
	})
	begin := time.Now()
	want(6)
	if took := time.Since(begin); took > 10*loadsTime {
		t.Errorf("it took %s", took)
	}
}

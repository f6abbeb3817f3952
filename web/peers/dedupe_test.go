package peers

import (
	"slices"
	"testing"
	"time"

	"dts"
)

// TestReplaceReachesWhoIsResponsible: a task that takes the place of another one is created by the server that can end
// that one.
func TestReplaceReachesWhoIsResponsible(t *testing.T) {
	w, n := servers(t, "n1", "n2", "n3")
	create := func(policy dts.DedupePolicy) {
		t.Helper()
		k := &dts.Task{ID: dts.NewID(time.Now()), TenantID: tenant, DedupeKey: "k", DedupePolicy: policy}
		if _, err := n[0].router.CreateTasks(ctx, []*dts.Task{k}); err != nil {
			t.Fatal(err)
		}
	}
	did := func() (list []string) {
		for _, s := range n {
			if len(s.asked()) > 0 {
				list = append(list, s.id)
			}
		}
		return list
	}
	create(dts.DedupeReplace)
	if got := did(); !slices.Equal(got, []string{"n1"}) {
		t.Errorf("with nothing to replace: %v", got)
	}
	w.mu.Lock()
	clear(w.tasks)
	w.mu.Unlock()
	for _, tt := range []struct {
		holder, runner string
		status         dts.Status
		want           string
	}{{"n2", "", dts.Pending, "n2"}, {"n2", "n3", dts.Running, "n3"}, {"n3", "gone", dts.Running, "n3"}, {"n2", "", dts.Cancelled, "n1"}} {
		k := w.task(tt.holder, tt.status, tt.runner)
		w.mu.Lock()
		clear(w.tasks)
		k.DedupeKey = "k"
		w.tasks[k.ID] = k
		w.mu.Unlock()
		create(dts.DedupeReplace)
		if got := did(); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	w.mu.Lock()
	clear(w.tasks)
	w.mu.Unlock()
	create(dts.DedupeReject)
	if got := did(); !slices.Equal(got, []string{"n1"}) {
		t.Errorf("REJECT: %v", got)
	}
}

package peers

import (
	"slices"
	"testing"

	"dts"
)

// TestEndOfARunReachesItsSteps: those that run where its shard was before are cancelled there, and first.
func TestEndOfARunReachesItsSteps(t *testing.T) {
	for _, verb := range []dts.Verb{dts.Cancel, dts.Delete, dts.RetryNow} {
		w, n := servers(t, "n1", "n2", "n3")
		run := w.task("n2", dts.Pending, "")
		run.TargetType, run.Attempts = dts.WorkflowRun, 1
		here, there := w.task("n2", dts.Running, "n2"), w.task("n2", dts.Running, "n3")
		here.WorkflowID, there.WorkflowID = run.ID, run.ID
		if _, err := n[0].router.DoTask(ctx, tenant, run.ID, verb, "alice"); err != nil {
			t.Fatal(err)
		}
		var want []string
		if verb != dts.RetryNow {
			want = []string{"cancel"}
		}
		if did := n[2].asked(); !slices.Equal(did, want) {
			t.Errorf("%s: who runs a step was asked for %v, want %v", verb, did, want)
		}
		if did := n[1].asked(); !slices.Equal(did, []string{string(verb)}) {
			t.Errorf("%s: the holder was asked for %v", verb, did)
		}
	}
}

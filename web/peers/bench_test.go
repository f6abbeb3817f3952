package peers

import (
	"testing"

	"dts"
)

// BenchmarkWake is how long it takes until another server, over loopback, knows of a task that was made ready.
func BenchmarkWake(b *testing.B) {
	w, n := servers(b, "n1", "n2")
	woken := make(chan struct{}, 1)
	n[1].onWake = func() { woken <- struct{}{} }
	ids := []string{dts.NewID(now)}
	for b.Loop() {
		n[0].client.Wake(w.live[1], ids)
		<-woken
	}
}

// BenchmarkVerb is what it costs that a verb is done by another server: the way there and back.
func BenchmarkVerb(b *testing.B) {
	w, n := servers(b, "n1", "n2")
	k := w.task("n2", dts.Pending, "")
	for b.Loop() {
		if _, err := n[0].router.DoTask(ctx, tenant, k.ID, dts.RunNow, "alice"); err != nil {
			b.Fatal(err)
		}
	}
}

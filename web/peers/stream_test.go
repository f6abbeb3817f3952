package peers

import (
	"context"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"dts"
)

func event(name string) dts.Event {
	return dts.Event{Type: dts.EventChanged, At: now, TenantID: tenant, Name: name, Error: "<&>"}
}

// next returns the name of the next event.
func next(t *testing.T, events <-chan dts.Event) string {
	t.Helper()
	select {
	case e, ok := <-events:
		if !ok {
			return "closed"
		}
		if e != event(e.Name) {
			t.Errorf("the event is %+v", e)
		}
		return e.Name
	case <-time.After(5 * time.Second):
		t.Fatal("no event came")
		return ""
	}
}

func TestEventsOfAllServers(t *testing.T) {
	w, n := servers(t, "n1", "n2", "n3")
	events, end := n[0].router.Subscribe(tenant)
	again, endAgain := n[0].router.Subscribe(tenant)
	other, endOther := n[0].router.Subscribe("other")
	for i, name := range []string{"a", "b", "c"} {
		n[i].publish(event(name)) // the subscription has waited until the streams are open
		if got := next(t, events); got != name {
			t.Errorf("from %s came %s", n[i].id, got)
		}
		if got := next(t, again); got != name {
			t.Errorf("from %s came %s to the second one", n[i].id, got)
		}
	}
	if len(other) > 0 {
		t.Error("another tenant was told")
	}
	if n[1].streams != 2 || n[0].streams != 2 {
		t.Errorf("%d and %d subscriptions; one for each tenant is enough", n[1].streams, n[0].streams)
	}

	// A server that comes later is heard too; one that goes is left.
	n4 := w.add("n4")
	until(t, "n4 is listened to", func() bool { return n4.listeners() == 2 })
	n4.publish(event("d"))
	if got := next(t, events); got != "d" {
		t.Errorf("from n4 came %s", got)
	}
	w.dies("n2", "n1")
	until(t, "n2 is left", func() bool { return n[1].listeners() == 0 })

	end()
	end()
	if got := next(t, events); got != "closed" {
		t.Errorf("after the end came %s", got)
	}
	n[2].publish(event("e"))
	for got := ""; got != "e"; got = next(t, again) {
		if got == "closed" {
			t.Fatal("the other subscription has ended too")
		}
	}
	endAgain()
	endOther()
	until(t, "nobody listens", func() bool { return n[0].listeners()+n[2].listeners()+n4.listeners() == 0 })

	// And again.
	events, end = n[0].router.Subscribe(tenant)
	defer end()
	n[2].publish(event("f"))
	if got := next(t, events); got != "f" {
		t.Errorf("the second time came %s", got)
	}
}

func TestSubscribeDoesNotWaitLong(t *testing.T) {
	_, n := servers(t, "n1", "n2", "n3")
	n[1].before = hang
	n[2].server.Close()
	begun := time.Now()
	events, end := n[0].router.Subscribe(tenant)
	defer end()
	if took := time.Since(begun); took < openTime || took > 4*openTime {
		t.Errorf("it took %s", took)
	}
	n[0].publish(event("a"))
	if got := next(t, events); got != "a" {
		t.Errorf("came %s", got)
	}
}

func TestEventsAfterABreak(t *testing.T) {
	_, n := servers(t, "n1", "n2")
	events, end := n[0].router.Subscribe(tenant)
	defer end()
	n[1].server.CloseClientConnections()
	until(t, "the stream is open again", func() bool { n[1].mu.Lock(); defer n[1].mu.Unlock(); return n[1].streams == 2 && len(n[1].subs) == 1 })
	n[1].publish(event("a"))
	if got := next(t, events); got != "a" {
		t.Errorf("came %s", got)
	}
}

// Who is too slow is told by the end of its channel, wherever the events got stuck.
func TestTooSlow(t *testing.T) {
	_, n := servers(t, "n1", "n2")
	slow, _ := n[0].router.Subscribe(tenant)
	fast, _ := n[0].router.Subscribe(tenant)
	for i := range subscriberBuffer + 1 {
		name := strconv.Itoa(i)
		n[0].publish(event(name))
		if got := next(t, fast); got != name {
			t.Fatalf("came %s, not %s", got, name)
		}
	}
	until(t, "the slow one has ended", func() bool { return len(slow) == subscriberBuffer })
	for range subscriberBuffer {
		<-slow
	}
	if got := next(t, slow); got != "closed" {
		t.Errorf("came %s", got)
	}

	// The stream from n2 is cut off there.
	n[1].set(func() {
		for ch := range n[1].subs {
			delete(n[1].subs, ch)
			close(ch)
		}
	})
	if got := next(t, fast); got != "closed" {
		t.Errorf("came %s", got)
	}
	until(t, "nobody listens", func() bool { return n[0].listeners()+n[1].listeners() == 0 })

	// A server that stops is no reason to tell anybody.
	events, end := n[0].router.Subscribe(tenant)
	defer end()
	n[1].set(func() {
		n[1].draining = true
		for ch := range n[1].subs {
			delete(n[1].subs, ch)
			close(ch)
		}
	})
	until(t, "the stream is opened again", func() bool { return n[1].listeners() == 1 })
	n[0].publish(event("a"))
	if got := next(t, events); got != "a" {
		t.Errorf("came %s", got)
	}

	// This server's scheduler ends.
	n[0].set(func() {
		for ch := range n[0].subs {
			delete(n[0].subs, ch)
			close(ch)
		}
	})
	if got := next(t, events); got != "closed" {
		t.Errorf("came %s", got)
	}
	n[0].router.Close()
	events, end = n[0].router.Subscribe(tenant)
	end()
	if got := next(t, events); got != "closed" {
		t.Errorf("came %s", got)
	}
}

func TestStreamsAreLimited(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	h := n[1].handler.(*Handler)
	for range maxStreams {
		h.streams <- struct{}{}
	}
	err := n[0].client.events(ctx, w.live[1], tenant, func() {}, func(dts.Event) {})
	if err == nil || !strings.Contains(err.Error(), "all 512 streams between servers are in use") {
		t.Error(err)
	}
	n[1].tails[tailKey{"a", 1}] = newTail()
	if a := call(t, n[1], "ReadOutput", &request{ID: "a", Number: 1}); a.Failure == nil || a.Failure.Code != dts.ErrUnavailable {
		t.Errorf("%+v", a)
	}
}

// read reads until something comes.
func read(t *testing.T, k dts.Tail, offset int64) (string, int64, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	chunk, next, done, err := k.Read(ctx, offset)
	if err != nil {
		t.Fatal(err)
	}
	return string(chunk), next, done
}

func TestLiveOutput(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	k := w.task("n1", dts.Running, "n2")
	out := newTail()
	n[1].set(func() { n[1].tails[tailKey{k.ID, 1}] = out })

	for _, number := range []int{0, 2} {
		if _, ok := n[0].router.Tail(k.ID, number); ok {
			t.Errorf("there is an attempt %d", number)
		}
	}
	if _, ok := n[0].router.Tail(dts.NewID(now), 1); ok {
		t.Error("there is output of a task that is not there")
	}
	tail, ok := n[0].router.Tail(k.ID, 1)
	if !ok {
		t.Fatal("the output is not found")
	}
	out.write("one\n", false)
	if text, next, done := read(t, tail, 0); text != "one\n" || next != 4 || done {
		t.Errorf("%q %d %t", text, next, done)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if chunk, next, done, err := tail.Read(short, 4); len(chunk) > 0 || next != 4 || done || err != context.DeadlineExceeded {
		t.Errorf("in vain: %q %d %t %v", chunk, next, done, err)
	}
	// The end comes while nobody reads, and the runner lets go of the output.
	out.write("two\n", true)
	n[1].set(func() { delete(n[1].tails, tailKey{k.ID, 1}) })
	if text, next, done := read(t, tail, 4); text != "two\n" || next != 8 || !done {
		t.Errorf("%q %d %t", text, next, done)
	}
	if text, next, done := read(t, tail, 8); text != "" || next != 8 || !done {
		t.Errorf("after the end: %q %d %t", text, next, done)
	}

	// One that is about to run is found by its claim.
	soon := w.task("n1", dts.Pending, "n2")
	if _, ok := n[0].router.Tail(soon.ID, 1); ok {
		t.Error("what is not claimed has output")
	}
	w.mu.Lock()
	w.tasks[soon.ID].PickedAt = now
	w.mu.Unlock()
	if _, ok := n[0].router.Tail(soon.ID, 1); ok {
		t.Error("what has not begun has output")
	}
	n[1].set(func() { n[1].tails[tailKey{soon.ID, 1}] = newTail() })
	if _, ok := n[0].router.Tail(soon.ID, 1); !ok {
		t.Error("what has begun has no output")
	}
	if _, ok := n[1].router.Tail(soon.ID, 1); !ok {
		t.Error("where it runs it has no output")
	}
}

func TestLiveOutputOfAServerThatGoes(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	k := w.task("n1", dts.Running, "n2")
	n[1].set(func() { n[1].tails[tailKey{k.ID, 1}] = newTail() })
	tail, ok := n[0].router.Tail(k.ID, 1)
	if !ok {
		t.Fatal("the output is not found")
	}
	n[1].set(func() { n[1].before = cut })
	time.AfterFunc(200*time.Millisecond, func() { w.dies("n2", "n1") })
	if text, next, done := read(t, tail, 7); text != "" || next != 7 || !done {
		t.Errorf("%q %d %t", text, next, done)
	}
	if _, ok := n[0].router.Tail(k.ID, 1); ok {
		t.Error("a dead server has output")
	}
}

func TestTailsAreForgotten(t *testing.T) {
	all := map[tailKey]dts.Tail{}
	n := &node{tails: all}
	for i := range maxTails + 10 {
		all[tailKey{"a", i}] = newTail()
	}
	k := newTails(outputs{n})
	for i := range maxTails + 10 {
		if _, ok := k.find("a", i); !ok {
			t.Errorf("attempt %d is not found", i)
		}
	}
	if len(k.held) != maxTails {
		t.Errorf("%d are kept", len(k.held))
	}
	k.mu.Lock()
	for _, h := range k.held {
		h.forget.Reset(0)
	}
	k.mu.Unlock()
	until(t, "they are forgotten", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return len(k.held) == 0 })
}

// The limits of the server that this is mounted in are for shorter requests.
func TestServersLimits(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	slow := httptest.NewUnstartedServer(n[1].handler)
	slow.Config.ReadTimeout, slow.Config.WriteTimeout = 200*time.Millisecond, 2*time.Second
	slow.Start()
	defer slow.Close()
	defer slow.CloseClientConnections()
	w.mu.Lock()
	w.live[1].Address = slow.URL
	w.mu.Unlock()

	events, end := n[0].router.Subscribe(tenant)
	defer end()
	n[1].during = func(ctx context.Context, _ string) {
		select {
		case <-ctx.Done():
		case <-time.After(600 * time.Millisecond):
		}
	}
	if _, err := n[0].router.DoTask(ctx, tenant, w.task("n2", dts.Pending, "").ID, dts.RunNow, "alice"); err != nil {
		t.Errorf("a verb: %v", err)
	}
	time.Sleep(2 * time.Second) // longer than the limit of an answer
	n[1].publish(event("a"))
	if got := next(t, events); got != "a" || n[1].streams != 1 {
		t.Errorf("came %s, from stream %d", got, n[1].streams)
	}
}

package sched

import (
	"slices"
	"testing"
)

// Two that hold some of the same tasks never wait for each other, whatever is posted between a task's release and the
// turn of who waits for it.
func TestHoldsDoNotWaitForEachOther(t *testing.T) {
	s := New(Options{})
	l := newLoop(s)
	defer l.timer.Close()
	pump := func() {
		for list := s.in.take(nil); len(list) > 0; list = s.in.take(nil) {
			for _, f := range list {
				f(l)
			}
		}
	}
	has := func(name string, h *holding, want ...string) {
		t.Helper()
		if pump(); !slices.Equal(h.taken, want) || h.over != (len(h.ids) == 0) {
			t.Fatalf("%s holds %v and waits for %v; want it to hold %v", name, h.taken, h.ids, want)
		}
	}
	begin := func(wait bool, ids ...string) *holding {
		h := s.newHolding(ids, wait)
		s.in.post(h.take)
		return h
	}
	verb := begin(true, "b")
	has("the verb", verb, "b")
	one := begin(true, "a", "b")
	has("the first", one, "a")

	s.release(verb.taken, nil)
	two := begin(true, "b", "a", "b") // comes before the first one's next turn
	has("the first", one, "a", "b")
	has("the second", two)

	planner := begin(false, "c", "a")
	has("the planner", planner, "c")
	if !slices.Equal(planner.others, []string{"a"}) {
		t.Errorf("the planner finds %v held by others", planner.others)
	}
	s.release(one.taken, nil)
	has("the second", two, "a", "b")
}

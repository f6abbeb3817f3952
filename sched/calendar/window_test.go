package calendar

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Windows are compared with a row of 60 minutes, each with the name of the window that covers it.
type row [60]string

func (r *row) paint(list []Window) {
	for _, w := range list {
		for m := w.From.Minute(); m < w.From.Minute()+int(w.To.Sub(w.From)/time.Minute); m++ {
			r[m] = w.Name
		}
	}
}

func minute(m int) time.Time { return time.Date(2026, 1, 1, 0, m, 0, 0, time.UTC) }

func drawWindows(t *rapid.T, name string, names ...string) []Window {
	var list []Window
	for range rapid.IntRange(0, 6).Draw(t, name) {
		from := rapid.IntRange(0, 58).Draw(t, "from")
		list = append(list, Window{
			From: minute(from), To: minute(rapid.IntRange(from, 59).Draw(t, "to")),
			Name: rapid.SampledFrom(names).Draw(t, "name"),
		})
	}
	return list
}

// inOrder fails unless windows are in order, apart, not empty, and as few as their names allow.
func inOrder(t *rapid.T, list []Window) {
	for i, w := range list {
		if !w.From.Before(w.To) {
			t.Fatalf("empty: %v", list)
		}
		if i > 0 && (w.From.Before(list[i-1].To) || w.From.Equal(list[i-1].To) && w.same(list[i-1])) {
			t.Fatalf("not in order, or cut: %v", list)
		}
	}
}

func TestOverlay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		under, over := drawWindows(t, "under", "a", "b"), drawWindows(t, "over", "b", "c")
		var want row
		first := slices.Clone(under)
		slices.SortStableFunc(first, func(a, b Window) int { return b.From.Compare(a.From) })
		want.paint(first) // the earliest last, on top
		under, over = tidy(under), tidy(over)
		inOrder(t, under)
		want.paint(over)
		all := Overlay(over, under)
		inOrder(t, all)
		var got row
		got.paint(all)
		for m, name := range got {
			if (name == "") != (want[m] == "") || len(over) == 0 && len(under) == 0 && name != "" {
				t.Fatalf("minute %d: %q, want %q", m, name, want[m])
			}
			w, ok := find(all, minute(m))
			if ok != (name != "") || w.Name != name {
				t.Fatalf("find minute %d: %v %v, want %q", m, w, ok, name)
			}
		}
		for _, w := range over {
			for m := w.From; m.Before(w.To); m = m.Add(time.Minute) {
				if got[m.Minute()] != w.Name {
					t.Fatalf("%v lies under %q", w, got[m.Minute()])
				}
			}
		}
		from := rapid.IntRange(0, 58).Draw(t, "clip from")
		to := rapid.IntRange(from, 59).Draw(t, "clip to")
		part := clip(all, minute(from), minute(to))
		inOrder(t, part)
		var clipped row
		clipped.paint(part)
		for m := range clipped {
			if inside := from <= m && m < to; inside && clipped[m] != got[m] || !inside && clipped[m] != "" {
				t.Fatalf("clipped to [%d, %d): minute %d is %q, was %q", from, to, m, clipped[m], got[m])
			}
		}
		for i, w := range merge(all) {
			if i > 0 && w.From.Equal(merge(all)[i-1].To) {
				t.Fatalf("not merged: %v", merge(all))
			}
		}
	})
}

package lanes

import (
	"testing"
	"time"
)

func TestPopFrom(t *testing.T) {
	q := New[string](Options{})
	var a, b, c Flow[string]
	at := time.Unix(0, 0)
	if _, ok := q.PopFrom(High); ok || q.Waits(High) {
		t.Error("something waits in an empty queue")
	}
	for _, v := range []string{"a1", "a2"} {
		q.Push(High, &a, at, v)
	}
	q.Push(High, &b, at, "b1")
	q.Push(High, &c, at, "c1")
	q.Push(Medium, &a, at, "m")
	q.Hold(&c)
	for _, want := range []string{"a1", "b1", "a2"} {
		if got, ok := q.PopFrom(High); !ok || got != want {
			t.Errorf("%q %v, want %q", got, ok, want)
		}
	}
	if _, ok := q.PopFrom(High); ok || q.Waits(High) || q.LenOf(High) != 1 {
		t.Error("a held flow was not passed over")
	}
	q.Resume(&c)
	if got, ok := q.PopFrom(High); !ok || got != "c1" || !q.Waits(Medium) {
		t.Errorf("%q %v", got, ok)
	}
	if got, _ := q.Pop(at); got != "m" || q.Len() != 0 {
		t.Errorf("%q, %d left", got, q.Len())
	}
}

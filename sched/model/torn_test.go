package model_test

import (
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"dts"
)

// A crash in the middle of something leaves part of it. The model then says all that may be left, and what is found
// must be one of those.

// tape decides, one after the other, what the model leaves open. The zero value decides no each time.
type tape struct {
	bits []bool
	next int
}

func (t *tape) choose() bool {
	if t.next == len(t.bits) {
		t.bits = append(t.bits, false)
	}
	t.next++
	return t.bits[t.next-1]
}

// another goes on to the next way to decide; false when there is none.
func (t *tape) another() bool {
	t.bits, t.next = t.bits[:t.next], 0
	for i := len(t.bits) - 1; i >= 0; i-- {
		if !t.bits[i] {
			t.bits[i] = true
			t.bits = t.bits[:i+1]
			return true
		}
	}
	return false
}

// mostWays bounds the ways that are tried.
const mostWays = 1 << 14

// crashWhile does something, and lets the server crash after some of the writes that this takes.
func (h *history) crashWhile(t *rapid.T) {
	kind := pick(t, "while", "create", "change", "change", "depend", "end", "end", "wait")
	q := request{text: "wait", real: func() error { return errors.New("nothing to acknowledge") }, model: func(*model) dts.Code { return "" }}
	switch kind {
	case "create":
		q = h.create(t)
	case "change":
		q = h.change(t, pick(t, "verb", dts.Cancel, dts.RetryNow, dts.ForceComplete, dts.RunNow, dts.RunNow, dts.Delete))
	case "depend":
		q = h.dependOn(t)
	case "end":
		q = h.end(t)
		end := q.real
		q.real = func() error { return errors.Join(end(), errors.New("whether it is written, is not told")) }
	}
	writes := uniform(t, "writes", 4)
	span := time.Millisecond
	switch {
	case kind == "wait":
		span = tick
	case uniform(t, "a while", 2) == 1:
		span = 100 * time.Millisecond
	}
	began := time.Now()
	h.w.cut.after(writes)
	answer := make(chan error, 1)
	go func() { answer <- q.real() }()
	settle(span)
	var err error
	select {
	case err = <-answer:
	default:
		err = errors.New("no answer")
	}
	t.Logf("%v: %s, and a crash after %d writes; the answer was %v", time.Since(h.w.began), q.text, writes, err)
	if err := h.w.crash(); err != nil {
		t.Fatalf("crash: %v", err)
	}
	crashed := time.Now()
	time.Sleep(h.untilTick(pick(t, "down", 1, 1, 2, 5)))
	if err := h.w.start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	started := time.Now()
	settle(look)
	found, fault := h.w.read()
	if fault != nil {
		t.Fatal(fault)
	}
	way, last := &tape{}, ""
	for range mostWays {
		m := h.m.clone()
		m.torn(way, q, err == nil, began, crashed)
		m.boot(started)
		m.advance(time.Now())
		list := h.w.differences(m, found)
		if len(list) == 0 {
			h.m = m
			h.wait(1) // to be compared once more at a moment at which nothing happens
			h.tally.note("crash while " + kind)
			return
		}
		last += fmt.Sprintf("\n %v:\n  %s", way.bits[:way.next], lines(list))
		if !way.another() {
			t.Fatalf("%v: difference after a crash, whatever of it was written: %s", time.Since(h.w.began), last[:min(len(last), 4000)])
		}
	}
	t.Fatalf("there are too many ways")
}

// torn lets a request have its effects until a crash, as far as the tape has them written. What had begun startShown
// before is stored as running.
func (m *model) torn(way *tape, q request, acknowledged bool, began, crashed time.Time) {
	m.way, m.frozen = way, map[int]bool{}
	if acknowledged || way.choose() {
		q.model(m)
	}
	m.advance(crashed)
	m.lose(func(t *task) bool {
		return t.once || t.stored || !t.started.Add(startShown).After(began) || way.choose()
	})
	m.way, m.frozen = nil, nil
}

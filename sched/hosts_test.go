package sched

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hostSim drives a hostLimit with a target that takes base for each call, and longer when more than capacity are in flight.
type hostSim struct {
	h        hostLimit
	now      time.Time
	base     time.Duration
	capacity int
	refuse   bool
	hang     bool
	flight   map[int]flying
	next     int
}

type flying struct {
	call
	ends time.Time
	v    verdict
}

func newHostSim() *hostSim {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &hostSim{h: newHostLimit(256, now), now: now, base: 100 * time.Millisecond, capacity: 1000, flight: map[int]flying{}}
}

func (s *hostSim) calls(yield func(call) bool) {
	for _, f := range s.flight {
		if !yield(f.call) {
			return
		}
	}
}

// run lets time pass, with so many calls wanted at any time.
func (s *hostSim) run(d time.Duration, want int) {
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(10 * time.Millisecond) {
		for id, f := range s.flight {
			if !f.ends.After(s.now) {
				delete(s.flight, id)
				s.h.end(f.call, s.now.Sub(f.began), f.v)
			}
		}
		s.h.look(s.now, s.calls)
		for s.h.inflight < min(want, s.h.allowed()) {
			f := flying{call: call{route: s.h.start("http://a/x"), began: s.now}, v: verdictAnswer}
			took := s.base * time.Duration(max(s.h.inflight, s.capacity)) / time.Duration(s.capacity)
			switch {
			case s.hang:
				took, f.v = 5*time.Minute, verdictRefusal
			case s.refuse:
				took, f.v = 10*time.Millisecond, verdictRefusal
			}
			f.ends = s.now.Add(took)
			s.next++
			s.flight[s.next] = f
		}
	}
}

func TestHostLimit(t *testing.T) {
	t.Run("a healthy host has no limit", func(t *testing.T) {
		s := newHostSim()
		s.run(20*time.Second, 256)
		if s.h.limited() {
			t.Errorf("limit %v, %s", s.h.limit, s.h.reason)
		}
	})
	t.Run("refusals bring it to one, and it recovers", func(t *testing.T) {
		s := newHostSim()
		s.run(5*time.Second, 256)
		s.refuse = true
		s.run(15*time.Second, 256)
		if s.h.allowed() != 1 || s.h.reason != reasonRefused {
			t.Errorf("limit %v, %s", s.h.limit, s.h.reason)
		}
		s.refuse = false
		s.run(time.Minute, 256)
		if s.h.limited() {
			t.Errorf("limit %v a minute after", s.h.limit)
		}
	})
	t.Run("slowness by too many calls ends at about what the host can do", func(t *testing.T) {
		s := newHostSim()
		s.capacity = 20
		s.run(5*time.Second, 4) // how long it takes
		s.run(30*time.Second, 256)
		if n := s.h.allowed(); n < 10 || n > 80 || s.h.reason != reasonSlow {
			t.Errorf("limit %v of a host that can do 20 at once, %s", s.h.limit, s.h.reason)
		}
		s.capacity = 1000
		s.run(time.Minute, 256)
		if s.h.limited() {
			t.Errorf("limit %v a minute after", s.h.limit)
		}
	})
	t.Run("a host that hangs is noticed before anything times out", func(t *testing.T) {
		s := newHostSim()
		s.run(5*time.Second, 20)
		s.hang = true
		s.run(20*time.Second, 256)
		if n := s.h.allowed(); n != int(hostLeast) {
			t.Errorf("limit %d", n)
		}
	})
	t.Run("one that is slower for good is accepted", func(t *testing.T) {
		s := newHostSim()
		s.run(5*time.Second, 30)
		s.base = 800 * time.Millisecond
		s.run(10*time.Second, 30)
		if !s.h.limited() {
			t.Error("it was not noticed")
		}
		s.run(2*time.Minute, 30)
		if s.h.limited() {
			t.Errorf("limit %v two minutes after", s.h.limit)
		}
	})
	t.Run("a few refusals among many answers, or of few calls, are no reason", func(t *testing.T) {
		s := newHostSim()
		for range 30 {
			s.refuse = true
			s.run(20*time.Millisecond, 1)
			s.refuse = false
			s.run(2*time.Second, 20)
		}
		if s.h.limited() {
			t.Errorf("limit %v", s.h.limit)
		}
	})
	t.Run("an idle hour is enough to be forgiven", func(t *testing.T) {
		s := newHostSim()
		s.refuse = true
		s.run(15*time.Second, 256)
		s.refuse = false
		s.run(time.Second, 0)
		s.now = s.now.Add(time.Hour)
		s.run(20*time.Millisecond, 1)
		if s.h.limited() {
			t.Errorf("limit %v", s.h.limit)
		}
	})
}

// A real server that handles four calls at a time, and then many: the limit falls, and recovers.
func TestHostLimitOnRealServer(t *testing.T) {
	var places atomic.Pointer[chan struct{}]
	few, many := make(chan struct{}, 4), make(chan struct{}, 1000)
	places.Store(&many)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := *places.Load()
		c <- struct{}{}
		time.Sleep(40 * time.Millisecond)
		<-c
		io.WriteString(w, "ok")
	}))
	defer srv.Close()
	h := newHostLimit(64, time.Now())
	type end struct {
		call
		took time.Duration
	}
	ends := make(chan end, 64)
	flight := map[call]int{}
	calls := func(yield func(call) bool) {
		for c := range flight {
			if !yield(c) {
				return
			}
		}
	}
	drive := func(until func() bool, limit time.Duration) bool {
		for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
			for h.inflight < h.allowed() {
				c := call{route: h.start(srv.URL), began: time.Now()}
				flight[c]++
				go func() {
					resp, err := srv.Client().Get(srv.URL)
					if err == nil {
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
					ends <- end{c, time.Since(c.began)}
				}()
			}
			e := <-ends
			if flight[e.call]--; flight[e.call] == 0 {
				delete(flight, e.call)
			}
			h.end(e.call, e.took, verdictAnswer)
			h.look(time.Now(), calls)
			if until() {
				return true
			}
		}
		return false
	}
	began := time.Now()
	drive(func() bool { return time.Since(began) > 1500*time.Millisecond }, 20*time.Second)
	places.Store(&few)
	if !drive(func() bool { return h.allowed() <= 16 }, 40*time.Second) {
		t.Errorf("the limit fell to %v only", h.limit)
	}
	places.Store(&many)
	if !drive(func() bool { return !h.limited() }, 60*time.Second) {
		t.Errorf("the limit rose to %v only", h.limit)
	}
	for h.inflight > 0 {
		e := <-ends
		h.end(e.call, e.took, verdictAnswer)
	}
}

func TestTargetOf(t *testing.T) {
	for config, want := range map[string][2]string{
		`{"url":"http://Example.com:80/a/b?q=1#f"}`:                                                   {"http://example.com", "http://example.com/a/b"},
		`{"method":"GET","URL":"HTTPS://u:p@h:443"}`:                                                  {"https://h", "https://h"},
		`{"body":"{\"url\":\"http://no/\"}","headers":{"url":"http://no/"},"url":"http:\/\/h:81\/x"}`: {"http://h:81", "http://h:81/x"},
		`{"expect_status":[1,2],"url" : "http://[::1]:8080/" , "x":1}`:                                {"http://[::1]:8080", "http://[::1]:8080/"},
		`{"argv":["true"]}`:  {},
		`{"url":null}`:       {},
		`{"url":"mailto:x"}`: {},
		`[]`:                 {},
		``:                   {},
	} {
		if host, url := targetOf([]byte(config)); host != want[0] || url != want[1] {
			t.Errorf("%s: %q %q, want %q", config, host, url, want)
		}
	}
}

func FuzzTopLevel(f *testing.F) {
	f.Add([]byte(`{"a":{"url":1},"url":"x\"y","b":[{"url":2}]}`))
	f.Add([]byte(`{"\u0075rl": [1,{"a":"}"}] ,"c":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := topLevel(text, "url")
		var want struct {
			URL json.RawMessage
		}
		if !json.Valid(text) || !strings.HasPrefix(strings.TrimSpace(string(text)), "{") || json.Unmarshal(text, &want) != nil {
			return // only that it does not panic
		}
		if string(got) != strings.TrimSpace(string(want.URL)) {
			t.Errorf("%s: %q, want %q", text, got, want.URL)
		}
	})
}

func BenchmarkTargetOf(b *testing.B) {
	for _, n := range []int{100, 1 << 20} {
		config := []byte(fmt.Sprintf(`{"url":"http://example.com/a","method":"POST","body":%q}`, strings.Repeat("x", n)))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				targetOf(config)
			}
		})
	}
}

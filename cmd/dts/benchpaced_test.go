package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHistogram compares percentiles with those of the sorted values: a bucket is at most 1/128 wide.
func TestHistogram(t *testing.T) {
	var h histogram
	if got := h.percentile(0.5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var list []int64
	for range 10_000 {
		v := int64(math.Exp(r.Float64() * 30))
		list = append(list, v)
		h.add(v)
	}
	slices.Sort(list)
	for _, p := range []float64{0.001, 0.01, 0.5, 0.9, 0.99, 1} {
		want, got := percentile(list, p), h.percentile(p)
		if got > want || float64(got) < float64(want)*(1-1.0/128) {
			t.Errorf("percentile %v is %d, not %d", p, got, want)
		}
	}
	if h.max != list[len(list)-1] {
		t.Errorf("max is %d", h.max)
	}
	for _, v := range []int64{0, 1, 127, 128, 255, 256, 257, 511, 512, 1 << 40, math.MaxInt64} {
		b := h.bucket(v)
		if low := h.lowest(b); low > v || h.bucket(low) != b || low > 0 && h.bucket(low-1) == b {
			t.Errorf("%d is in bucket %d, whose lowest value is said to be %d", v, b, low)
		}
	}
	h.add(-5)
	if h.counts[0] == 0 {
		t.Error("a value below 0 is lost")
	}
}

func TestPaced(t *testing.T) {
	server := httptest.NewServer((&sinkHandler{}).routes())
	defer server.Close()
	sink := &benchSink{url: server.URL, http: server.Client()}
	post := func(i int, scheduled string) int {
		req, err := http.NewRequest(http.MethodPost, sink.pacedURL(i), strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Dts-Scheduled-At", scheduled)
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	plan := pacedPlan{Tasks: 3, Rounds: 4, StartUS: time.Now().Add(-10 * time.Second).UnixMicro()}
	if err := sink.expect(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	for i := range plan.Tasks {
		for round := range plan.Rounds {
			post(i, plan.first(i).Add(time.Duration(round)*time.Second).Format(time.RFC3339Nano))
		}
	}
	post(1, plan.first(1).Format(time.RFC3339Nano)) // again
	for _, stray := range []struct {
		task int
		at   time.Time
	}{
		{3, plan.first(1)},
		{0, plan.first(0).Add(-time.Second)},
		{0, plan.first(0).Add(4 * time.Second)},
		{0, plan.first(0).Add(time.Microsecond)},
	} {
		post(stray.task, stray.at.Format(time.RFC3339Nano))
	}
	if status := post(0, "soon"); status != http.StatusBadRequest {
		t.Errorf("no time: status %d", status)
	}
	got, err := sink.paced(t.Context())
	if err != nil || got.Requests != 17 || got.Distinct != 12 || got.Strays != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	if time.Duration(got.MaxUS)*time.Microsecond < 10*time.Second || got.P50US < 7e6 || got.P99US < got.P50US || got.LastNS == 0 {
		t.Errorf("%+v", got)
	}
	if err := sink.expect(t.Context(), pacedPlan{Tasks: 1 << 20, Rounds: 1 << 10}); err == nil {
		t.Error("a plan beyond the sink's memory was taken")
	}
	if err := sink.expect(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if got, err := sink.paced(t.Context()); err != nil || got != (pacedTally{}) {
		t.Errorf("after a new plan: %+v, %v", got, err)
	}
}

func TestCreated(t *testing.T) {
	server := httptest.NewServer((&sinkHandler{}).routes())
	defer server.Close()
	sink := &benchSink{url: server.URL, http: server.Client()}
	c, err := sink.raw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for range 3 { // over one connection
		for _, n := range []int64{0, 1, 700, 5000, maxCreated} {
			if got, err := c.post(fmt.Sprintf("/created/%d", n), []byte("body"), http.StatusCreated); err != nil || got != n {
				t.Errorf("%d bytes came of %d: %v", got, n, err)
			}
		}
		if _, err := c.post("/created/-1", nil, http.StatusCreated); err == nil || !strings.Contains(err.Error(), "length") {
			t.Errorf("a length below 0: %v", err)
		}
	}
}

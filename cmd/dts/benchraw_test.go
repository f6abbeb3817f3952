package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// TestBulkBody holds that bodies that are put together by hand are those of the client.
func TestBulkBody(t *testing.T) {
	const url = "http://127.0.0.1:8421/x?y=z"
	at := func(i int) time.Time { return time.Date(2030, 1, 2, 3, 4, 5, i*1000, time.UTC) }
	var want api.BulkRequest
	for i := 7; i < 10; i++ {
		config, err := json.Marshal(dts.HTTPTarget{URL: url, Body: benchBody(i)})
		if err != nil {
			t.Fatal(err)
		}
		want.Tasks = append(want.Tasks, api.TaskRequest{Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: config}, RunAt: api.At(at(i))})
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := bulkBody(7, 10, url, at); !bytes.Equal(got, text) {
		t.Errorf("%s\nnot\n%s", got, text)
	}
}

func TestLaterBy(t *testing.T) {
	now := time.Now()
	at, again := laterBy(now), laterBy(now)
	var sum time.Duration
	seen := map[time.Time]bool{}
	const n = 10_000
	for i := range n {
		d := at(i).Sub(now)
		if d < time.Hour-time.Microsecond || d > 30*24*time.Hour {
			t.Fatalf("task %d is due in %s", i, d)
		}
		if again(i) != at(i) {
			t.Fatalf("task %d is due at another time the second time", i)
		}
		sum += d / n
		seen[at(i)] = true
	}
	if sum < 14*24*time.Hour || sum > 16*24*time.Hour || len(seen) < n-10 {
		t.Errorf("the mean is %s, and %d of %d are different", sum, len(seen), n)
	}
}

func TestRawFlood(t *testing.T) {
	var mu sync.Mutex
	seen, from := map[string]int{}, map[string]bool{}
	all := make(chan struct{}) // closed when all four connections have sent something: until then none is answered
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		b.ReadFrom(r.Body)
		mu.Lock()
		seen[b.String()+" "+r.RemoteAddr]++
		if from[r.RemoteAddr] = true; len(from) == 4 {
			select {
			case <-all:
			default:
				close(all)
			}
		}
		mu.Unlock()
		select {
		case <-all:
		case <-time.After(10 * time.Second):
		}
		if b.String() == "300" {
			http.Error(w, "not this one", http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	sink := &benchSink{url: server.URL}
	body := func(i int) []byte { return []byte(strings.TrimSuffix(strings.TrimPrefix(benchBody(i), `{"n":`), "}")) }
	if _, err := rawFlood(t.Context(), sink.raw, 4, 200, "/", http.StatusCreated, body); err != nil {
		t.Fatal(err)
	}
	bodies, conns := map[string]int{}, map[string]int{}
	for key, n := range seen {
		text, conn, _ := strings.Cut(key, " ")
		bodies[text] += n
		conns[conn] += n
	}
	if len(bodies) != 200 || len(conns) != 4 {
		t.Errorf("%d different bodies over %d connections", len(bodies), len(conns))
	}
	_, err := rawFlood(t.Context(), sink.raw, 4, 400, "/", http.StatusCreated, body)
	if err == nil || !strings.Contains(err.Error(), "request 301 of 400") || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("a refusal: %v", err)
	}
}

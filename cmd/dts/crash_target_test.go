package main_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// delivery is one request that the target received.
type delivery struct {
	at        time.Time
	path      string
	run       run    // by Idempotency-Key and X-DTS-Attempt
	scheduled string // X-DTS-Scheduled-At
	status    int    // what it was answered
}

// String is a delivery as evidence.
func (d delivery) String() string {
	return fmt.Sprintf("%s %s attempt %d answered %d", d.at.UTC().Format("15:04:05.000"), d.path, d.run.attempt, d.status)
}

// target is an HTTP server that keeps a log of what it receives. Under /moody it answers slowly or with 500
// at times, under /slow after a second, elsewhere at once.
type target struct {
	*httptest.Server
	mu  sync.Mutex
	rng *rand.Rand
	got []delivery
}

func newTarget(t *testing.T, seed uint64) *target {
	tg := &target{rng: rand.New(rand.NewPCG(seed, 1))}
	tg.Server = httptest.NewServer(tg)
	t.Cleanup(tg.Close)
	return tg
}

func (tg *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	attempt, _ := strconv.Atoi(r.Header.Get("X-DTS-Attempt"))
	d := delivery{at: at, path: r.URL.Path, run: run{r.Header.Get("Idempotency-Key"), attempt}, scheduled: r.Header.Get("X-DTS-Scheduled-At"), status: 200}
	var wait time.Duration
	tg.mu.Lock()
	switch r.URL.Path {
	case "/moody":
		if tg.rng.IntN(3) == 0 {
			wait = time.Duration(tg.rng.IntN(300)) * time.Millisecond
		}
		if tg.rng.IntN(10) == 0 {
			d.status = 500
		}
	case "/slow":
		wait = time.Second
	}
	tg.got = append(tg.got, d)
	tg.mu.Unlock()
	time.Sleep(wait)
	w.WriteHeader(d.status)
}

// deliveries returns the log so far.
func (tg *target) deliveries() []delivery {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	return slices.Clone(tg.got)
}

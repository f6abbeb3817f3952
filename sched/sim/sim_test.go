package sim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"dts"
)

// What histories are counted by.
const (
	requests = iota
	starts
	punctual
	instants
	skips
	crashes
	stops
	orphans
	clockSteps
	delays
	failures
	ambiguous
	stale
	success
	failed
	cancelled
	skipped
	open
	tallies
)

var tallyNames = [tallies]string{"requests", "starts", "starts held to be punctual", "instants accounted for", "skips", "crashes", "clean stops",
	"orphans", "steps of the clock", "slow accesses", "failed accesses", "writes of unknown outcome", "writes of dead processes refused",
	"tasks SUCCESS", "FAILED", "CANCELLED", "SKIPPED", "open at the end"}

type tally [tallies]int64

func statusTally(s dts.Status) int {
	switch s {
	case dts.Success:
		return success
	case dts.Failed:
		return failed
	case dts.Cancelled:
		return cancelled
	case dts.Skipped:
		return skipped
	}
	return open
}

// progress is how often a long run says how far it is.
const progress = 10 * time.Second

// TestSim runs histories: as many as fit into DTS_SIM_SECONDS (default 5), or DTS_SIM_HISTORIES of them, or with
// DTS_SIM_SEED that one alone, with everything that happened in it. Their seeds count up from DTS_SIM_FROM, by default
// from 1: the same each time, so that what fails is what was changed. "random" looks for what nobody has seen yet.
func TestSim(t *testing.T) {
	if text := os.Getenv("DTS_SIM_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("DTS_SIM_SEED: %v", err)
		}
		w := history(t, seed, &tally{})
		t.Log(w.report())
		if len(w.violations) > 0 {
			t.Fail()
		}
		return
	}
	limit, end := setting(t, "DTS_SIM_HISTORIES", 0), time.Time{}
	if limit == 0 {
		limit, end = 1<<40, time.Now().Add(time.Duration(setting(t, "DTS_SIM_SECONDS", 5))*time.Second)
	}
	if os.Getenv("GOGC") == "" { // a history leaves little behind
		defer debug.SetGCPercent(debug.SetGCPercent(1600))
	}
	var base uint64
	if from := os.Getenv("DTS_SIM_FROM"); from == "random" {
		base = rand.Uint64() >> 1
	} else {
		base = uint64(setting(t, "DTS_SIM_FROM", 1))
	}
	var sum tally
	n, bad, began := 0, 0, time.Now()
	tell := began.Add(progress)
	for ; n < limit && (end.IsZero() || time.Now().Before(end)) && bad < 3; n++ {
		seed := base + uint64(n)
		if w := history(t, seed, &sum); len(w.violations) > 0 {
			bad++
			t.Errorf("a promise was broken. Again: DTS_SIM_SEED=%d go test -run '^TestSim$' -count 1 -v ./sched/sim\n%s", seed, w.report())
		}
		if now := time.Now(); now.After(tell) {
			fmt.Fprintf(os.Stderr, "%d histories, %d failed, %.0f a second, from seed %d on\n", n+1, bad, float64(n+1)/now.Sub(began).Seconds(), base)
			tell = now.Add(progress)
		}
	}
	took := time.Since(began)
	text := fmt.Sprintf("%d histories in %v, %.0f a second, from seed %d on", n, took.Round(time.Second), float64(n)/took.Seconds(), base)
	for i, v := range sum {
		text += fmt.Sprintf("\n  %10d %s", v, tallyNames[i])
	}
	t.Log(text)
}

func setting(t *testing.T, name string, otherwise int) int {
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q; give a number of at least 1", name, v)
	}
	return n
}

// history runs the history of one seed in fake time.
func history(t *testing.T, seed uint64, sum *tally) *world {
	w := newWorld(seed, sum)
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("DTS_SIM_SEED=%d: %v", seed, p)
		}
	}()
	synctest.Test(t, func(*testing.T) { w.run() })
	return w
}

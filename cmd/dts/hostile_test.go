package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// TestHostile runs the real program in surroundings that break it or try to: damaged files, too few file
// descriptors, targets and commands that misbehave. Every promise is checked from outside.
//
// DTS_CRASH_SEED repeats the choices of an earlier test, DTS_CRASH_ROUNDS says how many damaged files there are.
func TestHostile(t *testing.T) {
	h := &hostile{bin: buildDTS(t), seed: rand.Uint64(), rounds: 40}
	if testing.Short() {
		h.rounds = 12
	}
	for name, set := range map[string]func(uint64){
		"DTS_CRASH_SEED":   func(n uint64) { h.seed = n },
		"DTS_CRASH_ROUNDS": func(n uint64) { h.rounds = int(n) },
	} {
		if v := os.Getenv(name); v != "" {
			n, err := strconv.ParseUint(v, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			set(n)
		}
	}
	t.Logf("DTS_CRASH_SEED=%d", h.seed)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"commands", h.commands}, // the longest first
		{"files", h.damagedFiles},
		{"background", h.damageFoundLater},
		{"empty", h.emptyDatabase},
		{"descriptors", h.descriptors},
		{"targets", h.targets},
		{"elsewhere", h.redirectElsewhere},
		{"survivors", h.commandsSurvive},
		{"ends", h.commandEnds},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.run(t)
		})
	}
}

// hostile is what the parts of TestHostile share.
type hostile struct {
	bin    string
	seed   uint64
	rounds int
}

// errorf reports a broken promise with the seed that shows it again.
func (h *hostile) errorf(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Errorf("DTS_CRASH_SEED=%d: %s", h.seed, fmt.Sprintf(format, args...))
}

package model_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dts/store/sqlite/sqlitetest"
)

const (
	lengthOf = 100 // steps of a history, on average
	atATime  = 10  // histories between two looks at how many steps have been made
)

// TestModel makes DTS_MODEL_STEPS steps (3000) in histories of some hundred. They begin with the seed 1, the same each
// time, so that what fails is what was changed; DTS_MODEL_FROM is another one, or "random".
func TestModel(t *testing.T) {
	total := number(t, "DTS_MODEL_STEPS", 3000)
	seed := uint64(time.Now().UnixNano())
	if os.Getenv("DTS_MODEL_FROM") != "random" {
		seed = uint64(number(t, "DTS_MODEL_FROM", 1))
	}
	if given := flag.Lookup("rapid.seed").Value.String(); given != "0" {
		seed, _ = strconv.ParseUint(given, 10, 64) // a failure that is to be seen again
	}
	checks := atATime
	if testing.Short() {
		checks *= 5 // rapid divides it
	}
	set(t, "rapid.checks", checks)
	set(t, "rapid.steps", lengthOf)

	within := t.TempDir()
	began, told, y := time.Now(), time.Now(), &tally{seen: map[string]int{}}
	for y.steps < total {
		set(t, "rapid.seed", seed)
		rapid.Check(quiet{t}, func(r *rapid.T) { inBubble(t, r, within, y) })
		seed += 1_000_000
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d steps, %.0f a second\n", y.steps, float64(y.steps)/time.Since(began).Seconds())
		}
	}
	t.Logf("%d steps in %v%v", y.steps, time.Since(began).Round(time.Second), y)
}

// quiet is a test that does not tell of each round.
type quiet struct{ *testing.T }

func (q quiet) Logf(format string, args ...any) {
	if !strings.HasPrefix(format, "[rapid] OK") {
		q.T.Logf(format, args...)
	}
}

// inBubble makes one history in fake time. A failure is a panic to rapid, so it is carried out of the bubble.
func inBubble(t *testing.T, r *rapid.T, within string, y *tally) {
	dir, err := os.MkdirTemp(within, "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "dts.db")
	if err := sqlitetest.Make(path); err != nil {
		t.Fatal(err)
	}
	var failure any
	synctest.Test(t, func(*testing.T) {
		defer func() {
			if failure = recover(); failure != nil && !strings.HasPrefix(fmt.Sprintf("%T", failure), "rapid.") {
				failure = fmt.Sprintf("%v\n%s", failure, debug.Stack())
			}
		}()
		w, err := newWorld(path)
		if err != nil {
			r.Fatalf("start: %v", err)
		}
		defer w.crash() // whatever it is about
		h := &history{w: w, m: newModel(time.Now()), tally: y}
		r.Repeat(map[string]func(*rapid.T){"step": h.step, "": h.compare})
		h.close()
	})
	// Rapid takes failures of the same place for the same.
	switch text := fmt.Sprint(failure); {
	case failure == nil:
	case strings.Contains(text, "difference"):
		panic(failure)
	case strings.Contains(text, "answer:"):
		panic(failure)
	case fmt.Sprintf("%T", failure) == "rapid.stopTest":
		panic(failure)
	default: // what was drawn is no history, or something panicked
		panic(failure)
	}
}

func set(t *testing.T, name string, value any) {
	if err := flag.Set(name, fmt.Sprint(value)); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, name string, otherwise int) int {
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

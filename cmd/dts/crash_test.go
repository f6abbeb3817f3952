package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCrash breaks the real program again and again while it works, and checks what dts promises: against the
// API's answers, the database, the commands' own log and the target's. See docs/reliability.md.
//
// DTS_CRASH_ROUNDS says how often it is broken, DTS_CRASH_SEED repeats the choices of an earlier test.
func TestCrash(t *testing.T) {
	rounds, seed := crashSettings(t, 6)
	bin := buildDTS(t, "failpoints")
	checkBadFailpoints(t, bin)
	runEpochs(t, epochOptions{bin: bin, seed: seed, rounds: rounds, per: 1, ways: crashWays})
}

// checkBadFailpoints: a test that names a point which is not there would test nothing.
func checkBadFailpoints(t *testing.T, bin string) {
	t.Helper()
	for _, v := range []string{"nowhere:1", "before-commit", "before-commit:0", "before-commit:x"} {
		s := &testServer{t: t, bin: bin, data: filepath.Join(t.TempDir(), "data"), home: t.TempDir(), failpoint: v}
		if out, code := s.second(); code == 0 || !strings.Contains(out, "DTS_FAILPOINT") {
			t.Errorf("DTS_FAILPOINT=%s: exit code %d, %q", v, code, out)
		}
	}
}

// How many rounds make an epoch, and how many a test in which some outages are long.
const (
	shortEpoch = 12
	longEpoch  = 50 // from as many rounds on
	longCrash  = 500
)

// crashSettings reads the environment.
func crashSettings(t *testing.T, rounds int) (int, uint64) {
	t.Helper()
	seed := rand.Uint64N(1e9)
	if v := os.Getenv("DTS_CRASH_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("DTS_CRASH_ROUNDS is %q; give a number of at least 1", v)
		}
		rounds = n
	}
	if v := os.Getenv("DTS_CRASH_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("DTS_CRASH_SEED: %v", err)
		}
		seed = n
	}
	return rounds, seed
}

// epochOptions are what a number of epochs have in common.
type epochOptions struct {
	bin    string
	seed   uint64 // of the first epoch; each next one has the next number
	rounds int    // in all
	per    int    // how many of DTS_CRASH_ROUNDS make one round
	ways   []wayWeight
	faults bool // the disk is made to fail: errors and their lines in the log are no surprise
}

// runEpochs divides the rounds into epochs. Each begins with an empty data directory and ends with a full check:
// so a broken promise is found near its cause, and a long test does not grow. It ends after the first epoch
// that fails.
func runEpochs(t *testing.T, o epochOptions) {
	size := min(o.rounds, shortEpoch)
	if o.rounds >= longEpoch {
		size = longEpoch
	}
	t.Logf("DTS_CRASH_SEED=%d", o.seed)
	begun, totals := time.Now(), map[string]int{}
	done := 0
	for ; done < o.rounds && !t.Failed(); o.seed++ {
		n := size
		t.Run(fmt.Sprintf("seed-%d", o.seed), func(t *testing.T) {
			for what, k := range runEpoch(t, o, n) {
				totals[what] += k
			}
		})
		done += n
	}
	t.Logf("%d rounds in %.0f s: %v", done, time.Since(begun).Seconds(), totals)
}

// runEpoch breaks one server a number of times and returns counts of what happened.
func runEpoch(t *testing.T, o epochOptions, rounds int) map[string]int {
	// Every third epoch has a disk so small that it can be filled.
	data, small := filepath.Join(t.TempDir(), "data"), false
	if !o.faults && o.seed%3 == 0 {
		disk := t.TempDir()
		if err := mountSmall(t, disk, "64m"); err != nil {
			t.Logf("NO FULL DISK IS TESTED: %v", err)
		} else {
			data, small = filepath.Join(disk, "data"), true
		}
	}
	s := newServer(t, o.bin, data)
	c := &crash{
		judge: judge{t: t, target: newTarget(t, o.seed), runs: newRunLog(t), broken: map[string]int{}, counts: map[string]int{}},
		seed:  o.seed, asked: rounds * o.per, long: o.rounds >= longCrash, faults: o.faults || small, server: s,
		seenTasks: map[string]string{}, seenAttempts: map[run]string{}, served: map[markedProcess]bool{},
	}
	c.replay, c.disturbed, c.api = c.replayCommand, c.crashed, s.client
	c.load = newLoad(t, s.client, c.target, c.runs)
	c.launch("")
	s.awaitReady()
	c.load.mayFail.Store(false)
	c.addRecurring()
	c.kill()
	for n := 1; n <= rounds && !t.Failed(); n++ {
		c.round(newRound(o.seed, n, o.ways, small))
	}
	if t.Failed() {
		return c.counts
	}
	c.start("")
	c.settle()
	if code := s.stop(15 * time.Second); code != 0 {
		c.violated(clean, "exit code %d after SIGTERM", code)
	}
	c.checkAll()
	return c.counts
}

// crash is the state of one epoch.
type crash struct {
	judge
	seed   uint64
	asked  int // the DTS_CRASH_ROUNDS that make such an epoch
	long   bool
	faults bool // the disk fails at times
	server *testServer

	launches []time.Time // of every server process; each but the last one has ended since, most by kill -9
	ready    bool        // the newest of them got ready
	left     wreck       // what the last server left

	seenTasks    map[string]string // tasks that had ended when a server was killed, and how
	seenAttempts map[run]string
	served       map[markedProcess]bool // daemons that the test has killed
}

// replayCommand says how to make the same choices again. What they meet differs from run to run.
func (c *crash) replayCommand() string {
	return fmt.Sprintf("replay: DTS_CRASH_SEED=%d DTS_CRASH_ROUNDS=%d go test -run '^%s$' -count 1 -v ./cmd/dts", c.seed, c.asked, rootName(c.t))
}

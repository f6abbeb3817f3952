package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// way is how a round breaks the server.
type way string

const (
	killed    way = "kill"      // kill -9 while it works
	killEarly way = "early"     // kill -9 while it starts
	failpoint way = "failpoint" // it kills itself at a named point
	frozen    way = "freeze"    // SIGSTOP for a while, then SIGCONT, or kill -9
	termed    way = "term"      // SIGTERM, so that clean stops are among the others
	diskFull  way = "full"      // its disk fills up, then there is room again, or kill -9
	faultRun  way = "fault"     // some of its system calls fail, then no more
	faultBoot way = "faultboot" // the same from its start on, then kill -9
)

type wayWeight struct {
	way    way
	weight int
}

// crashWays are those of TestCrash; diskFull counts on a small disk only.
var crashWays = []wayWeight{{killed, 4}, {killEarly, 2}, {failpoint, 8}, {frozen, 1}, {termed, 1}, {diskFull, 6}}

// failpoints are the names that a build with the tag knows, and how often they are reached at most in a round.
var failpoints = []struct {
	name string
	most int
}{
	{"before-commit", 80}, {"after-commit", 80}, {"before-start", 50}, {"before-run", 50}, {"after-run", 50}, {"before-plan", 4}, {"after-plan", 4},
}

// round is what happens to the server from one launch to the next. All of it is drawn before it begins, so that
// the same seed gives the same rounds.
type round struct {
	number   int
	way      way
	alive    time.Duration // that it works before it is broken
	early    time.Duration // the same, counted from its launch
	point    string        // DTS_FAILPOINT
	freeze   time.Duration
	longStop bool          // freeze for 30 s, in a long test
	mercy    bool          // it may go on: after the freeze, after there is room again
	outage   time.Duration // after it has ended
	fault    fault
	rng      *rand.Rand // for the load
}

func newRound(seed uint64, number int, ways []wayWeight, small bool) round {
	rng := rand.New(rand.NewPCG(seed, uint64(number)))
	ms := func(low, high int) time.Duration {
		return time.Duration(low)*time.Millisecond + time.Duration(rng.Int64N(int64(high-low)*int64(time.Millisecond)))
	}
	r := round{number: number, alive: ms(50, 1000), early: ms(5, 250), freeze: ms(2000, 3000), longStop: rng.IntN(8) == 0, mercy: rng.IntN(2) == 0, rng: rng}
	fp := failpoints[rng.IntN(len(failpoints))]
	r.point = fmt.Sprintf("%s:%d", fp.name, 1+rng.IntN(fp.most))
	if rng.IntN(10) == 0 { // an outage that is long for those that do not make up for it
		r.outage = ms(1500, 3000)
	}
	r.fault = newFault(rng)
	total := 0
	for _, w := range ways {
		if w.way != diskFull || small {
			total += w.weight
		}
	}
	n := rng.IntN(total)
	for _, w := range ways {
		if w.way == diskFull && !small {
			continue
		}
		if n -= w.weight; n < 0 {
			r.way = w.way
			break
		}
	}
	return r
}

// launch starts a process with a failpoint, or with none. Requests may fail from now on.
func (c *crash) launch(point string) {
	c.t.Helper()
	c.load.mayFail.Store(true)
	c.launches = append(c.launches, c.runs.launched(c.t))
	c.ready = false
	c.server.failpoint = point
	c.server.launch()
}

// start launches a process and waits until it is ready, and reports that; false means that it died at its
// failpoint before. Once it is ready, no process of its predecessor's unfinished attempts may be left.
func (c *crash) start(point string) bool {
	c.t.Helper()
	c.launch(point)
	if point == "" {
		c.server.awaitReady()
	} else if !c.server.readyOrDead(20 * time.Second) {
		c.diedAt(point)
		return false
	}
	c.ready = true
	c.checkOrphans()
	if point == "" {
		c.load.mayFail.Store(false)
	}
	return true
}

// diedAt checks that the failpoint, and nothing else, has ended the server.
func (c *crash) diedAt(point string) {
	c.t.Helper()
	if w, ok := c.server.state.Sys().(syscall.WaitStatus); !ok || !w.Signaled() || w.Signal() != syscall.SIGKILL {
		c.violated(clean, "with DTS_FAILPOINT=%s the server ended by itself: %s", point, c.server.state)
	}
	c.bury()
}

// kill kills the server.
func (c *crash) kill() {
	c.load.mayFail.Store(true)
	c.server.kill()
	c.bury()
}

// round lets the server work and breaks it.
func (c *crash) round(r round) {
	s, l := c.server, c.load
	before := l.count()
	what := string(r.way)
	defer func() {
		kind, _, _ := strings.Cut(what, ",")
		c.counts[kind]++
		c.counts["acknowledged"] += l.count() - before
		c.t.Logf("%3d  %5.0f ms  %3d acknowledged  %2d orphans  %s", r.number, float64(time.Since(c.launches[len(c.launches)-1]).Microseconds())/1000, l.count()-before, len(c.left.processes), what)
		time.Sleep(r.outage)
	}()
	switch r.way {
	case killEarly:
		c.launch("")
		select {
		case <-s.exited:
			c.violated(clean, "the server ended at its start: %s", s.state)
		case <-time.After(r.early):
		}
		what += fmt.Sprintf(", after %d ms", r.early.Milliseconds())
		c.kill()
		return
	case faultBoot:
		what += ", " + c.bootWithFault(r)
		return
	case failpoint:
		if !c.start(r.point) {
			what += ", at its start at " + r.point
			return
		}
	default:
		c.start("")
	}
	stop := c.work(r)
	switch r.way {
	case killed:
		time.Sleep(r.alive)
		c.kill()
	case failpoint:
		select {
		case <-s.exited:
			what += ", at " + r.point
			c.diedAt(r.point)
		case <-time.After(1200 * time.Millisecond):
			what += ", killed before " + r.point
			c.kill()
		}
	case frozen:
		time.Sleep(r.alive)
		what += c.freeze(r)
	case termed:
		time.Sleep(r.alive)
		l.mayFail.Store(true)
		begun := time.Now()
		if code := s.stop(40 * time.Second); code != 0 {
			c.violated(clean, "exit code %d after SIGTERM", code)
		}
		what += fmt.Sprintf(", drained in %d ms", time.Since(begun).Milliseconds())
		c.bury()
		if n := len(c.left.running); n > 0 {
			c.violated(i6, "%d attempts are RUNNING after a clean stop: %v", n, c.left.running)
		}
	case diskFull:
		time.Sleep(r.alive / 2)
		what += c.fillDisk(r)
	case faultRun:
		time.Sleep(r.alive / 2)
		what += ", " + c.injectFault(r)
	}
	stop()
}

// work begins to add tasks, and returns the function that ends it; the server is dead by then.
func (c *crash) work(r round) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var adders sync.WaitGroup
	for i := range 3 {
		name, rng := strconv.Itoa(r.number)+"-"+strconv.Itoa(i), rand.New(rand.NewPCG(r.rng.Uint64(), 2))
		adders.Go(func() {
			if i == 0 {
				c.load.resend()
			}
			c.load.add(ctx, name, rng)
		})
	}
	return func() { cancel(); adders.Wait() }
}

// freeze stops the process for a while. Another server must not start meanwhile.
func (c *crash) freeze(r round) string {
	s := c.server
	if r.longStop && c.long {
		r.freeze = 30 * time.Second
	}
	c.load.mayFail.Store(true)
	s.process.Signal(syscall.SIGSTOP)
	begun := time.Now()
	if out, code := s.second(); code == 0 || !strings.Contains(out, "is locked") {
		c.violated(clean, "a second server on the same data directory: exit code %d, %q", code, out)
	}
	time.Sleep(r.freeze - time.Since(begun))
	if !r.mercy {
		c.kill()
		return fmt.Sprintf(", %.1f s, killed", r.freeze.Seconds())
	}
	s.process.Signal(syscall.SIGCONT)
	c.awaitWrite()
	time.Sleep(300 * time.Millisecond)
	c.kill()
	return fmt.Sprintf(", %.1f s, went on", r.freeze.Seconds())
}

// awaitWrite waits until the server takes a task, and reports that; false means that it has ended.
func (c *crash) awaitWrite() (alive bool) {
	alive = true
	c.server.eventually(20*time.Second, "a write to be taken; "+c.replay(), func() bool {
		select {
		case <-c.server.exited:
			alive = false
		default:
		}
		return !alive || c.load.send(c.load.plain()) != ""
	})
	return alive
}

func rootName(t *testing.T) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

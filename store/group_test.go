package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeBackend records what is applied and fails as script says. Statements are their SQL; a
// statement "bad" is refused as a constraint would.
type fakeBackend struct {
	Backend
	mu      sync.Mutex
	calls   [][]string
	applied []string
	script  []func(stmts []string) error // one for each Apply, then none
	hold    chan struct{}                // if set, each Apply waits to receive from it
	entered chan struct{}                // if set, told when an Apply begins
	noIndex bool                         // refuse without saying which statement
}

func (f *fakeBackend) Apply(ctx context.Context, batch ...Stmt) ([]Result, error) {
	if f.entered != nil {
		f.entered <- struct{}{}
	}
	if f.hold != nil {
		<-f.hold
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var sqls []string
	for _, s := range batch {
		sqls = append(sqls, s.SQL)
	}
	f.calls = append(f.calls, sqls)
	if len(f.script) > 0 {
		next := f.script[0]
		f.script = f.script[1:]
		if next != nil {
			if err := next(sqls); err != nil {
				return nil, err
			}
		}
	}
	res := make([]Result, len(batch))
	for i, s := range sqls {
		if strings.HasPrefix(s, "bad") {
			if f.noIndex {
				i = -1
			}
			return nil, &RefusedError{Index: i, Err: errors.New("constraint")}
		}
		res[i].RowsAffected = int64(len(s))
	}
	f.applied = append(f.applied, sqls...)
	return res, nil
}

func batchOf(sqls ...string) []Stmt {
	var b []Stmt
	for _, s := range sqls {
		b = append(b, Stmt{SQL: s})
	}
	return b
}

// queueBehind makes the fake busy with one batch and queues the others behind it, so that they form
// one group. It returns their outcomes in order.
func queueBehind(t *testing.T, g *Group, f *fakeBackend, batches ...[]Stmt) []outcome {
	t.Helper()
	first := make(chan error, 1)
	go func() {
		_, err := g.Apply(context.Background(), Stmt{SQL: "first"})
		first <- err
	}()
	<-f.entered
	out := make([]outcome, len(batches))
	var wg sync.WaitGroup
	for i, b := range batches {
		wg.Add(1)
		g.ApplyAsync(b, func(r []Result, err error) { out[i] = outcome{r, err}; wg.Done() })
	}
	f.mu.Lock()
	f.entered = nil // the goroutine is inside Apply, past its use
	f.mu.Unlock()
	close(f.hold)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	return out
}

func heldFake() *fakeBackend {
	return &fakeBackend{hold: make(chan struct{}), entered: make(chan struct{}, 1)}
}

func TestGroupConcatenatesWhatWaits(t *testing.T) {
	f := heldFake()
	var commits, batches atomic.Int64
	g := NewGroup(f, GroupOptions{OnCommit: func(b, s int, d time.Duration, err error) {
		commits.Add(1)
		batches.Add(int64(b))
	}})
	defer g.Close()
	out := queueBehind(t, g, f, batchOf("a", "bb"), batchOf("ccc"), batchOf("d"))
	if len(f.calls) != 2 || fmt.Sprint(f.calls[1]) != "[a bb ccc d]" {
		t.Fatalf("calls = %v, want the three waiting batches in one", f.calls)
	}
	if got := fmt.Sprint(out[0].res, out[1].res, out[2].res); got != "[{1} {2}] [{3}] [{1}]" {
		t.Errorf("results = %s: each batch must get its own", got)
	}
	if commits.Load() != 2 || batches.Load() != 4 {
		t.Errorf("OnCommit saw %d commits, %d batches; want 2 and 4", commits.Load(), batches.Load())
	}
}

func TestGroupLimits(t *testing.T) {
	f := heldFake()
	g := NewGroup(f, GroupOptions{MaxStmts: 3, MaxBytes: 100})
	defer g.Close()
	big := []Stmt{{SQL: "big", Args: []any{strings.Repeat("x", 90)}}}
	queueBehind(t, g, f, batchOf("a", "b"), batchOf("c"), batchOf("d"), big, batchOf("e", "f", "g", "h"), big, big)
	want := "[[first] [a b c] [d big] [e f g h] [big] [big]]"
	if got := fmt.Sprint(f.calls); got != want {
		t.Errorf("calls = %s, want %s", got, want)
	}
}

func TestGroupRefusalFailsOnlyItsBatch(t *testing.T) {
	for _, noIndex := range []bool{false, true} {
		f := heldFake()
		f.noIndex = noIndex
		g := NewGroup(f, GroupOptions{})
		out := queueBehind(t, g, f, batchOf("a"), batchOf("b", "bad1"), batchOf("c"), batchOf("bad2"), batchOf("d"))
		g.Close()
		for i, o := range out {
			if bad := i == 1 || i == 3; bad != errors.Is(o.err, ErrRefused) || bad != (o.err != nil) {
				t.Errorf("noIndex=%v: batch %d: err = %v", noIndex, i, o.err)
			}
		}
		if got := fmt.Sprint(f.applied); got != "[first a c d]" {
			t.Errorf("noIndex=%v: applied %s, want [first a c d]", noIndex, got)
		}
		var r *RefusedError
		if !errors.As(out[1].err, &r) || !noIndex && r.Index != 1 {
			t.Errorf("noIndex=%v: %v: want the index within the batch, 1", noIndex, out[1].err)
		}
	}
}

func TestGroupManyRefusalsStayLinear(t *testing.T) {
	f := heldFake()
	g := NewGroup(f, GroupOptions{})
	defer g.Close()
	var in [][]Stmt
	for i := range 1000 {
		in = append(in, batchOf([]string{"ok", "bad"}[i%2]))
	}
	queueBehind(t, g, f, in...)
	total := 0
	for _, c := range f.calls {
		total += min(len(c), 1+strings.Count(strings.Split(strings.Join(c, " ")+" ", "bad")[0], " "))
	}
	if len(f.applied) != 501 || total > 3000 {
		t.Errorf("applied %d, ran %d statements; want 501 and at most 3,000", len(f.applied), total)
	}
}

func TestGroupFullFailsTheWholeGroup(t *testing.T) {
	for _, want := range []error{ErrFull, ErrUnavailable} {
		f := heldFake()
		f.script = []func([]string) error{nil, func([]string) error { return fmt.Errorf("%w: test", want) }}
		g := NewGroup(f, GroupOptions{})
		out := queueBehind(t, g, f, batchOf("a"), batchOf("b"))
		g.Close()
		for i, o := range out {
			if !errors.Is(o.err, want) {
				t.Errorf("batch %d: err = %v, want %v", i, o.err, want)
			}
		}
		if len(f.calls) != 2 {
			t.Errorf("%v: calls = %v: it must not be tried again", want, f.calls)
		}
	}
}

func TestGroupReplaysAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unknown := func([]string) error { return fmt.Errorf("%w: test", ErrUnknown) }
		f := heldFake()
		f.script = []func([]string) error{nil, unknown, unknown,
			func([]string) error { return ErrUnavailable }, nil, nil}
		g := NewGroup(f, GroupOptions{})
		defer g.Close()
		start := time.Now()
		out := queueBehind(t, g, f, batchOf("a"), batchOf("b"), batchOf("bad"))
		if out[0].err != nil || out[1].err != nil {
			t.Errorf("errors %v, %v; want both applied in the end", out[0].err, out[1].err)
		}
		if !errors.Is(out[2].err, ErrUnknown) || errors.Is(out[2].err, ErrRefused) {
			t.Errorf("err = %v; a refusal after an unknown outcome stays unknown", out[2].err)
		}
		want := "[[first] [a b bad] [a] [a] [a] [b] [bad]]"
		if got := fmt.Sprint(f.calls); got != want {
			t.Errorf("calls = %s, want %s", got, want)
		}
		if got := time.Since(start); got != 350*time.Millisecond { // 50 + 100 + 200
			t.Errorf("it took %v, want 350ms", got)
		}
	})
}

func TestGroupGivesUpAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := heldFake()
		f.script = make([]func([]string) error, 1)
		for range 1000 {
			f.script = append(f.script, func([]string) error { return ErrUnknown })
		}
		g := NewGroup(f, GroupOptions{})
		defer g.Close()
		start := time.Now()
		out := queueBehind(t, g, f, batchOf("a"), batchOf("b"))
		for i, o := range out {
			if !errors.Is(o.err, ErrUnknown) {
				t.Errorf("batch %d: err = %v, want unknown", i, o.err)
			}
		}
		if got := time.Since(start); got != 10*time.Second {
			t.Errorf("gave up after %v, want 10s", got)
		}
		if n := len(f.calls); n < 20 || n > 30 {
			t.Errorf("%d calls in ten seconds of backoff, want 20 to 30", n)
		}
	})
}

func TestGroupContextEndsOnlyTheWait(t *testing.T) {
	f := heldFake()
	g := NewGroup(f, GroupOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	errc := make(chan error, 1)
	go func() {
		_, err := g.Apply(ctx, Stmt{SQL: "a"})
		errc <- err
	}()
	<-f.entered
	cancel()
	if err := <-errc; !errors.Is(err, ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want ErrUnknown and context.Canceled", err)
	}
	close(f.hold)
	g.Close()
	if got := fmt.Sprint(f.applied); got != "[a]" {
		t.Errorf("applied %s: the write must not be cancelled", got)
	}
	if _, err := g.Apply(context.Background(), Stmt{SQL: "b"}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
	var async error
	g.ApplyAsync(batchOf("c"), func(_ []Result, err error) { async = err })
	if !errors.Is(async, ErrUnavailable) {
		t.Errorf("ApplyAsync after Close: %v", async)
	}
}

func TestGroupQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := heldFake()
		g := NewGroup(f, GroupOptions{MaxWaiting: 2})
		go g.Apply(t.Context(), Stmt{SQL: "first"})
		<-f.entered
		var accepted, refused int
		for range 3 {
			g.ApplyAsync(batchOf("x"), func(_ []Result, err error) {
				if errors.Is(err, ErrUnavailable) {
					refused++
				} else if err == nil {
					accepted++
				}
			})
		}
		// Apply waits for room, until its context ends ...
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := g.Apply(ctx, Stmt{SQL: "never"})
		if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnknown) {
			t.Errorf("err = %v, want ErrUnavailable by the deadline", err)
		}
		// ... or until there is room.
		done := make(chan error)
		go func() {
			_, err := g.Apply(t.Context(), Stmt{SQL: "later"})
			done <- err
		}()
		synctest.Wait()
		f.entered = nil
		close(f.hold)
		if err := <-done; err != nil {
			t.Error(err)
		}
		g.Close()
		if accepted != 2 || refused != 1 {
			t.Errorf("accepted %d, refused %d; want 2 and 1", accepted, refused)
		}
		if got := fmt.Sprint(f.applied); got != "[first x x later]" {
			t.Errorf("applied %s", got)
		}
	})
}

func TestGroupManyCallers(t *testing.T) {
	f := &fakeBackend{}
	g := NewGroup(f, GroupOptions{MaxWaiting: 10})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for j := range 100 {
				sql := fmt.Sprint(i, ".", j)
				if _, err := g.Apply(t.Context(), Stmt{SQL: sql}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	g.Close()
	g.Close()
	seen := map[string]bool{}
	for _, s := range f.applied {
		seen[s] = true
	}
	if len(f.applied) != 5000 || len(seen) != 5000 {
		t.Errorf("%d applied, %d distinct; want 5,000 of each", len(f.applied), len(seen))
	}
}

// nullBackend costs nothing, so that the benchmark shows the Group alone.
type nullBackend struct {
	Backend
	res []Result
}

func (n *nullBackend) Apply(_ context.Context, batch ...Stmt) ([]Result, error) {
	if len(n.res) < len(batch) {
		n.res = make([]Result, len(batch))
	}
	return n.res[:len(batch)], nil
}

func BenchmarkGroup(b *testing.B) {
	batch := []Stmt{{SQL: "x", Args: []any{int64(1), "abcdef"}}, {SQL: "y"}}
	b.Run("Apply", func(b *testing.B) {
		g := NewGroup(&nullBackend{}, GroupOptions{})
		defer g.Close()
		b.ReportAllocs()
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := g.Apply(context.Background(), batch...); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("ApplyAsync", func(b *testing.B) {
		g := NewGroup(&nullBackend{}, GroupOptions{MaxWaiting: 1 << 30, MaxQueued: 1 << 30})
		b.ReportAllocs()
		var n atomic.Int64
		done := func([]Result, error) { n.Add(1) }
		for b.Loop() {
			g.ApplyAsync(batch, done)
		}
		g.Close()
	})
}

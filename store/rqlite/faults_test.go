package rqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dts/store"
	"dts/store/rqlite/rqlitetest"
)

// TestLeaderDies kills and pauses the leader of three nodes under concurrent writes, and looks for what was acknowledged and
// is gone, or applied twice. DTS_RQLITE_FAULTS makes it longer.
func TestLeaderDies(t *testing.T) {
	faults := 3
	if n, err := strconv.Atoi(os.Getenv("DTS_RQLITE_FAULTS")); err == nil {
		faults = n
	}
	c := rqlitetest.Start(t, rqlitetest.Options{Nodes: 3})
	d := openTest(t, Options{URLs: c.URLs()})
	mustApply(t, d, store.Stmt{SQL: `INSERT INTO t (id, s) VALUES (0, '0')`})

	// Each batch adds a row that may be there only once and counts it. Neither can be done twice unnoticed: no batch
	// here is idempotent by itself.
	ctx, stop := context.WithCancel(t.Context())
	type writer struct {
		acked, unknown map[int64]bool
		longest        time.Duration // between two acknowledgements
	}
	writers := make([]writer, 8)
	var latest atomic.Int64 // acknowledgement, in Unix microseconds
	var wg sync.WaitGroup
	for i := range writers {
		w := &writers[i]
		w.acked, w.unknown = map[int64]bool{}, map[int64]bool{}
		wg.Go(func() {
			last := time.Now()
			for n := int64(1); ctx.Err() == nil; n++ {
				id := int64(i+1)<<32 + n
				res, err := d.Apply(context.Background(), put(id, "x"), store.Stmt{SQL: `UPDATE t SET s = s + 1 WHERE id = 0`})
				switch {
				case err == nil:
					w.acked[id] = true
					w.longest = max(w.longest, time.Since(last))
					last = time.Now()
					latest.Store(last.UnixMicro())
					if len(res) != 2 {
						t.Errorf("%d results", len(res))
					}
				case errors.Is(err, store.ErrUnknown):
					w.unknown[id] = true
				case !errors.Is(err, store.ErrUnavailable):
					t.Errorf("row %d: %v", id, err)
				}
			}
		})
	}
	// A reader sees every write that was acknowledged before it began to read.
	wg.Go(func() {
		var seen int64
		for ctx.Err() == nil {
			rows, err := d.Query(context.Background(), store.OwnWrites, store.Stmt{SQL: `SELECT CAST(s AS INTEGER) FROM t WHERE id = 0`})
			if err != nil {
				continue
			}
			var n int64
			if rows.Next() && rows.Scan(&n) == nil {
				if n < seen {
					t.Errorf("the count went back from %d to %d", seen, n)
				}
				seen = n
			}
			rows.Close()
		}
	})
	for i := range faults {
		time.Sleep(time.Duration(300+rand.IntN(700)) * time.Millisecond) // some writes in between
		leader := c.Leader()
		start := time.Now()
		var elected time.Duration
		elect := func() {
			c.Leader()
			elected = time.Since(start).Round(time.Millisecond)
		}
		switch i % 3 {
		case 0:
			leader.Kill()
			elect()
			leader.Start()
		case 1:
			leader.Pause()
			elect()
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond) // it wakes into the next one's term
			leader.Continue()
		case 2:
			leader.Terminate()
			elect()
			leader.Start()
		}
		for latest.Load() <= start.Add(elected).UnixMicro() {
			time.Sleep(time.Millisecond) // an answer may still come from the old one's time
		}
		t.Logf("%s: another leader after %v, a write after %v", [...]string{"killed", "paused", "stopped in good order"}[i%3], elected, time.UnixMicro(latest.Load()).Sub(start).Round(time.Millisecond))
		leader.WaitReady()
	}
	time.Sleep(300 * time.Millisecond)
	stop()
	wg.Wait()

	there := map[int64]bool{}
	rows, err := d.Query(t.Context(), store.Linearizable, store.Stmt{SQL: `SELECT id FROM t WHERE id > 0`})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		there[id] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	acked, unknown, longest := 0, 0, time.Duration(0)
	for i := range writers {
		w := &writers[i]
		acked, unknown, longest = acked+len(w.acked), unknown+len(w.unknown), max(longest, w.longest)
		for id := range w.acked {
			if !there[id] {
				t.Errorf("row %d was acknowledged and is gone", id)
			}
			delete(there, id)
		}
		for id := range w.unknown {
			delete(there, id)
		}
	}
	if len(there) > 0 {
		t.Errorf("%d rows are there although their writes were said to have failed", len(there))
	}
	counted := value[int64](t, d, `SELECT CAST(s AS INTEGER) FROM t WHERE id = 0`)
	if n := value[int64](t, d, `SELECT count(*) FROM t WHERE id > 0`); n != counted {
		t.Errorf("%d rows were counted, and there are %d", counted, n)
	}
	t.Logf("%d faults, %d batches acknowledged, %d unknown, the longest wait %v; moved to another node %d times",
		faults, acked, unknown, longest.Round(time.Millisecond), d.Health().Moves)
	if acked < 50*faults {
		t.Errorf("only %d batches were acknowledged", acked)
	}
}

// TestNoLeader: without a leader writes wait up to their deadline and then say why, reads give way sooner after a
// while, stale reads go on, and everything is well again when the leader is back.
func TestNoLeader(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{Nodes: 3})
	log := &logBuffer{}
	d := openTest(t, Options{URLs: c.URLs(), WriteTimeout: time.Second, ReadTimeout: time.Second, Logger: log.logger()})
	mustApply(t, d, put(1, "a"))
	leader := c.Leader()
	for _, n := range c.Nodes() {
		if n != leader {
			n.Kill()
		}
	}
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); { // the leader notices after a second
		if _, err = d.Apply(t.Context(), put(2, "b")); err != nil && !d.Health().Leader {
			break
		}
		if err == nil {
			mustApply(t, d, store.Stmt{SQL: `DELETE FROM t WHERE id = 2`})
		}
	}
	if _, err = d.Apply(t.Context(), put(3, "c")); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
		t.Errorf("write: %v", err)
	}
	h := d.Health()
	if h.Leader || h.Err == nil || h.Since.IsZero() {
		t.Errorf("health %+v", h)
	}
	if _, err := d.Query(t.Context(), store.OwnWrites, store.Stmt{SQL: `SELECT 1`}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("read: %v", err)
	}
	rows, err := d.Query(t.Context(), store.Stale, store.Stmt{SQL: `SELECT s FROM t WHERE id = 1`})
	if err != nil {
		t.Fatalf("stale read: %v", err)
	}
	if !rows.Next() {
		t.Error("a stale read finds nothing")
	}
	rows.Close()
	for _, n := range c.Nodes() {
		n.Start()
	}
	c.Leader()
	for end := time.Now().Add(20 * time.Second); ; {
		if _, err = d.Apply(t.Context(), put(4, "d")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the leader is back: %v", err)
		}
	}
	if h := d.Health(); h.Err != nil {
		t.Errorf("the leader is back: %+v", h)
	}
	if n := log.count("rqlite does not answer as it should"); n != 1 {
		t.Errorf("the log says %d times that rqlite does not answer, want once:\n%s", n, log)
	}
	if n := log.count("rqlite answers again"); n != 1 {
		t.Errorf("the log says %d times that rqlite answers again, want once:\n%s", n, log)
	}
}

// TestFollowsLeader: the node that is used becomes the one that leads, and a batch goes through any of them.
func TestFollowsLeader(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{Nodes: 3})
	for i, n := range c.Nodes() {
		d := openTest(t, Options{URLs: []string{n.URL()}})
		mustApply(t, d, put(int64(i), "through any"))
	}
	d := openTest(t, Options{URLs: c.URLs()})
	leader := c.Leader()
	if h := d.Health(); h.Node != leader.URL() {
		t.Errorf("it uses %s, and %s leads", h.Node, leader.URL())
	}
	d.use(int32((d.current.Load() + 1) % 3))
	mustApply(t, d, put(10, "through a follower"))
	for end := time.Now().Add(10 * time.Second); d.Health().Node != c.Leader().URL(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it stays with %s, and %s leads", d.Health().Node, c.Leader().URL())
		}
	}
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if s := fmt.Sprint(d.Stats().DBBytes); s == "0" {
		t.Error("the size of the database is not known")
	}
}

// TestSlowQuery: a query that takes long is waited for, and a node that says nothing is not.
func TestSlowQuery(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	d := openTest(t, Options{URLs: c.URLs()})
	const quiet = 100 * time.Millisecond
	const slow = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT max(i) FROM n`
	for rounds := 1 << 18; ; rounds *= 2 {
		start := time.Now()
		if _, at := d.node().ask(t.Context(), quiet, store.OwnWrites, slow, []any{rounds}); at.err != nil {
			t.Fatalf("after %v: %v", time.Since(start), at.err)
		}
		if time.Since(start) > 4*quiet {
			break // the node was asked in between, and was not given up
		}
	}
	c.Nodes()[0].Pause()
	start := time.Now()
	if _, at := d.node().ask(t.Context(), quiet, store.Stale, `SELECT 1`, nil); !errors.Is(at.err, errQuiet) || time.Since(start) > quiet+3*answerTime {
		t.Errorf("after %v: %v", time.Since(start), at.err)
	}
	c.Nodes()[0].Continue()
	if n := value[int64](t, d, `SELECT 1`); n != 1 {
		t.Error(n)
	}
}

// TestTroubleIsToldOnce: while writes fail and reads do not, as on a full disk, the log says so once.
func TestTroubleIsToldOnce(t *testing.T) {
	log := &logBuffer{}
	d := must(connect(Options{URLs: []string{"http://127.0.0.1:1"}, Migrations: testMigrations(1), Logger: log.logger()}))
	defer d.Close()
	for range 3 {
		d.note(d.node(), writing, errors.New("no room"))
		d.note(d.node(), reading, nil)
	}
	if h := d.Health(); h.Err == nil || h.Since.IsZero() || log.count("\n") != 1 || d.away() {
		t.Errorf("health %+v, log:\n%s", h, log)
	}
	d.note(d.node(), reading, errors.New("gone"))
	d.note(d.node(), writing, nil)
	if h := d.Health(); h.Err != nil || log.count("\n") != 2 || log.count("answers again") != 1 {
		t.Errorf("health %+v, log:\n%s", h, log)
	}
}

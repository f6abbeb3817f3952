package rqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dts/store"
	"dts/store/rqlite/rqlitetest"
)

// assertS refuses the batch unless the row has this text.
func assertS(id int64, s string) store.Stmt {
	return store.Stmt{SQL: `INSERT INTO t (id, s) SELECT 'no integer', NULL WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = ? AND s = ?)`, Args: []any{id, s}}
}

func setS(id int64, s string) store.Stmt {
	return store.Stmt{SQL: `UPDATE t SET s = ? WHERE id = ?`, Args: []any{s, id}}
}

// TestLostAnswer: a batch whose answer is lost, or which is lost itself, is applied once, however often that happens.
func TestLostAnswer(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	p := newProxy(t, c.URLs()[0])
	d := openTest(t, Options{URLs: []string{p.url}})
	add := store.Stmt{SQL: `UPDATE t SET s = s || '.' WHERE id = 0`} // twice would show
	mustApply(t, d, put(0, ""))
	for i, tookEffect := range []bool{true, false, true, true, false} {
		p.failNext(tookEffect)
		before := p.writes.Load()
		mustApply(t, d, put(int64(i+1), "x"), add)
		if n := p.writes.Load() - before; n != 2 {
			t.Errorf("the batch was sent %d times, want twice", n)
		}
	}
	if s := value[string](t, d, `SELECT s FROM t WHERE id = 0`); s != "....." {
		t.Errorf("5 batches left %q", s)
	}
	if h := d.Health(); h.Err != nil || !h.Leader || h.Node != p.url {
		t.Errorf("health %+v", h)
	}
}

// capture takes the next write, unanswered, and returns what sends it after all.
func (p *proxy) capture(t *testing.T, target string) (send func() string) {
	type captured struct {
		query string
		body  []byte
	}
	taken := make(chan captured, 1)
	f := func(_ http.ResponseWriter, r *http.Request, _ func()) {
		body, _ := io.ReadAll(r.Body)
		taken <- captured{r.URL.RawQuery, body}
		panic(http.ErrAbortHandler)
	}
	p.next.Store(&f)
	return func() string {
		t.Helper()
		var c captured
		select {
		case c = <-taken:
		default:
			t.Fatal("nothing was captured")
		}
		resp, err := http.Post(target+"/db/execute?"+c.query, "application/json", bytes.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
}

// TestGhost: a request that arrives long after its batch was settled changes nothing.
func TestGhost(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	target := c.URLs()[0]
	p := newProxy(t, target)
	d := openTest(t, Options{URLs: []string{p.url}})
	mustApply(t, d, put(1, "closed"), put(2, "a"))

	t.Run("after success", func(t *testing.T) {
		send := p.capture(t, target)
		mustApply(t, d, setS(2, "b"))
		mustApply(t, d, setS(2, "c"))
		if answer := send(); !strings.Contains(answer, "UNIQUE constraint failed: rqlite_op.epoch, rqlite_op.token") {
			t.Errorf("the ghost was answered %s", answer)
		}
		if s := value[string](t, d, `SELECT s FROM t WHERE id = 2`); s != "c" {
			t.Errorf("the ghost was applied: %q", s)
		}
	})
	t.Run("after a refusal", func(t *testing.T) {
		send := p.capture(t, target)
		_, err := d.Apply(t.Context(), assertS(1, "open"), setS(2, "d"))
		var r *store.RefusedError
		if !errors.As(err, &r) || r.Index != 0 {
			t.Fatalf("err = %v, want a refusal of statement 0", err)
		}
		mustApply(t, d, setS(1, "open")) // now the ghost would pass
		if answer := send(); !strings.Contains(answer, "UNIQUE constraint failed: rqlite_op.epoch, rqlite_op.token") {
			t.Errorf("the ghost was answered %s", answer)
		}
		if s := value[string](t, d, `SELECT s FROM t WHERE id = 2`); s != "c" {
			t.Errorf("the ghost of a refused batch was applied: %q", s)
		}
	})
	t.Run("after its row was deleted", func(t *testing.T) {
		send := p.capture(t, target)
		mustApply(t, d, setS(2, "e"))
		mustApply(t, d, setS(2, "f"))
		age(t, d, 2)
		if n := value[int64](t, d, `SELECT count(*) FROM rqlite_op WHERE applied = 1`); n > 5 {
			t.Errorf("%d rows of batches are left", n)
		}
		if answer := send(); !strings.Contains(answer, "NOT NULL constraint failed: rqlite_op.epoch") {
			t.Errorf("the ghost was answered %s", answer)
		}
		if s := value[string](t, d, `SELECT s FROM t WHERE id = 2`); s != "f" {
			t.Errorf("the ghost was applied: %q", s)
		}
	})
}

// TestMaintain: rows of old batches go, in bounds, and younger ones stay.
func TestMaintain(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	d := openTest(t, Options{URLs: c.URLs()})
	const old = 2*pruneStep + 5
	mustApply(t, d, store.Stmt{SQL: `INSERT INTO rqlite_op (epoch, token, applied, schema)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT 0, i, 1, 1 FROM n`, Args: []any{old}})
	count := func() int64 { return value[int64](t, d, `SELECT count(*) FROM rqlite_op WHERE epoch = 0`) }
	maintain := func(epoch, rows int64) {
		t.Helper()
		if err := d.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e, n := value[int64](t, d, `SELECT epoch FROM rqlite_epoch`), count(); e != epoch || n != rows {
			t.Errorf("epoch %d, %d old rows; want %d and %d", e, n, epoch, rows)
		}
	}
	maintain(1, old) // the epoch before the present one
	age(t, d, 1)
	maintain(2, 0)
}

// age begins n epochs.
func age(t *testing.T, d *DB, n int) {
	t.Helper()
	for range n {
		d.opKeep = 0
		if err := d.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d.opKeep = opKeep
}

// TestStoodStill: a process that has slept through several epochs goes on, and what it had sent before does not count.
func TestStoodStill(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	p := newProxy(t, c.URLs()[0])
	slept := openTest(t, Options{URLs: []string{p.url}})
	awake := openTest(t, Options{URLs: c.URLs()})
	mustApply(t, slept, put(1, "a"))
	age(t, awake, 5)
	mustApply(t, slept, put(2, "b"))
	age(t, awake, 5)
	p.failNext(false) // its fate is unknown, until it is certain that it comes too late
	mustApply(t, slept, put(3, "c"))
	age(t, awake, 1)
	p.failNext(true) // one epoch is not too late
	mustApply(t, slept, put(4, "d"))
	if n := value[int64](t, awake, `SELECT count(*) FROM t`); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
}

// fakeNode answers as a script says.
type fakeNode struct {
	answers []string // for each write, the last one again and again; "" closes the connection
	writes  atomic.Int64
}

func (f *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Rqlite-Version", "v8.43.4")
	if r.URL.Path != "/db/execute" {
		fmt.Fprint(w, `{"results":[{"columns":["n"],"types":["integer"],"values":[[1]]}]}`)
		return
	}
	var sent [][]any
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || len(sent) == 0 || sent[0][0] != insertOp {
		http.Error(w, "the batch does not begin with its token", http.StatusBadRequest)
		return
	}
	n := f.writes.Add(1)
	a := f.answers[min(int(n), len(f.answers))-1]
	switch {
	case a == "":
		panic(http.ErrAbortHandler)
	case strings.HasPrefix(a, "5"), strings.HasPrefix(a, "4"):
		code, text, _ := strings.Cut(a, " ")
		n, _ := strconv.Atoi(code)
		http.Error(w, text, n)
	default:
		fmt.Fprint(w, a)
	}
}

// TestAnswers: what each answer of rqlite means.
func TestAnswers(t *testing.T) {
	const (
		good    = `{"results":[{"rows_affected":1},{"rows_affected":3}]}`
		broken  = `{"results":[],"error":"leadership lost while committing log"}`
		already = `{"results":[{"error":"UNIQUE constraint failed: rqlite_op.epoch, rqlite_op.token"}]}`
	)
	for _, tt := range []struct {
		name    string
		answers []string
		want    error // nil: applied
		sent    int64 // 0: does not matter
		text    string
	}{
		{"applied", []string{good}, nil, 1, ""},
		{"an error of the request as a whole", []string{broken, good}, nil, 2, ""},
		{"the same, and it was applied", []string{broken, already}, nil, 2, ""},
		{"500", []string{"500 oops", good}, nil, 2, ""},
		{"no leader for a moment", []string{"503 leader not found", good}, nil, 2, ""},
		{"too few results", []string{`{"results":[{"rows_affected":1}]}`, already}, nil, 2, ""},
		{"no results", []string{`{}`, already}, nil, 2, ""},
		{"no JSON", []string{`<html>`, good}, nil, 2, ""},
		{"refused", []string{`{"results":[{"rows_affected":1},{"error":"UNIQUE constraint failed: t.id"}]}`}, store.ErrRefused, 1, "t.id"},
		{"trouble with the disk", []string{`{"results":[{"rows_affected":1},{"error":"disk I/O error"}]}`, good}, nil, 2, ""},
		{"not rolled back", []string{`{"results":[{"rows_affected":1},{"error":"x"},{"rows_affected":1}]}`}, store.ErrUnknown, 1, "not rolled back"},
		{"a newer schema", []string{`{"results":[{"error":"NOT NULL constraint failed: rqlite_op.schema"}]}`}, store.ErrUnavailable, 1, "newer dts"},
		{"too late", []string{`{"results":[{"error":"NOT NULL constraint failed: rqlite_op.epoch"}]}`, good}, nil, 2, ""},
		{"never a leader", []string{"503 leader not found"}, store.ErrUnavailable, 0, "leader not found"},
		{"never an answer", []string{""}, store.ErrUnknown, 0, ""},
		{"lost once, then never a leader", []string{"", "503 leader not found"}, store.ErrUnknown, 0, "leader not found"},
		{"not leader", []string{`{"results":[],"error":"not leader"}`}, store.ErrUnavailable, 0, "not leader"},
		{"wrong password", []string{"401 "}, store.ErrUnavailable, 1, "refuses the user and password"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fakeNode{answers: tt.answers}
			srv := httptest.NewServer(f)
			defer srv.Close()
			d, err := connect(Options{URLs: []string{srv.URL}, WriteTimeout: 300 * time.Millisecond, Migrations: testMigrations(1)})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			res, err := d.Apply(t.Context(), put(1, "a"))
			if !errors.Is(err, tt.want) || tt.want == nil && (err != nil || len(res) != 1) {
				t.Errorf("%v, %v; want %v", res, err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%q does not say %q", err, tt.text)
			}
			if n := f.writes.Load(); tt.sent != 0 && n != tt.sent {
				t.Errorf("sent %d times, want %d", n, tt.sent)
			}
		})
	}
}

// TestManyStatements: a batch of 10,000 statements is one transaction, and its limit of time is in proportion.
func TestManyStatements(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	d := openTest(t, Options{URLs: c.URLs()})
	var batch []store.Stmt
	for i := range 10_000 {
		batch = append(batch, put(int64(i), strings.Repeat("é", 500)))
	}
	start := time.Now()
	mustApply(t, d, batch...)
	t.Logf("10,000 statements and 10 MB of text in %v", time.Since(start))
	if n := value[int64](t, d, `SELECT count(*) FROM t`); n != 10_000 {
		t.Errorf("%d rows", n)
	}
	batch[9_999] = put(5, "again")
	batch[0], batch[5] = put(20_000, "a"), put(20_001, "b")
	if _, err := d.Apply(t.Context(), batch[:10]...); !errors.Is(err, store.ErrRefused) {
		t.Errorf("%v, want a refusal", err)
	}
	if n := value[int64](t, d, `SELECT count(*) FROM t`); n != 10_000 {
		t.Errorf("%d rows after a refusal", n)
	}
}

// TestLongAnswer: an answer beyond the limit is an error that says so, at once.
func TestLongAnswer(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Rqlite-Version", "v8.43.4")
		fmt.Fprint(w, `{"results":[{"columns":["s"],"types":["text"],"values":[["`)
		for range MaxAnswer >> 20 {
			w.Write(chunk)
		}
		fmt.Fprint(w, `"]]}]}`)
	}))
	defer srv.Close()
	d := must(connect(Options{URLs: []string{srv.URL}, ReadTimeout: time.Minute, Migrations: testMigrations(1)}))
	defer d.Close()
	rows, err := d.Query(t.Context(), store.OwnWrites, store.Stmt{SQL: `SELECT s FROM t`})
	if err == nil {
		rows.Close()
	}
	if !errors.Is(err, errTooLong) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("an answer of more than %d MiB: %v", MaxAnswer>>20, err)
	}
}

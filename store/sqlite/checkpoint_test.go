package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dts/store"
)

// grow writes n batches of about 256 KiB of log each.
func grow(t *testing.T, d *DB, from, n int64) {
	t.Helper()
	s := strings.Repeat("x", 60_000)
	for i := range n {
		mustApply(t, d, put(from+4*i, s), put(from+4*i+1, s), put(from+4*i+2, s), put(from+4*i+3, s))
	}
}

func TestLogIsBoundedUnderSteadyWrites(t *testing.T) {
	d := openTest(t, testPath(t), Options{})
	var peak int64
	for i := range int64(40) {
		grow(t, d, i*1000, 20)
		peak = max(peak, d.Stats().WALBytes)
	}
	if peak > 2*walTruncateAt {
		t.Errorf("the log reached %d MiB while 183 MiB were written", peak>>20)
	}
	if err := d.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := d.Stats()
	if s.LastCheckpoint.IsZero() || time.Since(s.LastCheckpoint) > time.Minute {
		t.Errorf("last checkpoint %v", s.LastCheckpoint)
	}
	if s.DBBytes < 180<<20 {
		t.Errorf("the database has %d MiB after Maintain, want all of what was written", s.DBBytes>>20)
	}
	t.Logf("peak log %d MiB, then %d MiB", peak>>20, s.WALBytes>>20)
}

// TestLogWithLongRead: a reader keeps the log from being reset, and writes go on.
func TestLogWithLongRead(t *testing.T) {
	d := openTest(t, testPath(t), Options{})
	grow(t, d, 0, 2)
	rows, err := d.Query(t.Context(), store.Stale, store.Stmt{SQL: `SELECT id FROM t`})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	rows.Next()
	grow(t, d, 1_000_000, 4*walTruncateAt/(1<<20)+80)
	if w := d.Stats().WALBytes; w < walTruncateAt {
		t.Fatalf("the log has %d MiB; the test needs more", w>>20)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := d.Stats().WALBytes; w != 0 {
		t.Errorf("the log has %d MiB after the read has ended and Maintain, want 0", w>>20)
	}
}

func TestVacuum(t *testing.T) {
	d := openTest(t, testPath(t), Options{})
	grow(t, d, 0, 100)
	if err := d.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := d.Stats().DBBytes
	mustApply(t, d, store.Stmt{SQL: `DELETE FROM t WHERE id > 10`})
	for range 10 {
		if err := d.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	after := d.Stats().DBBytes
	if before < 20<<20 || after > before/2 {
		t.Errorf("%d MiB before, %d MiB after deleting nearly everything", before>>20, after>>20)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := openTest(b, testPath(b), Options{})
			batch := make([]store.Stmt, n)
			id := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				for i := range batch {
					id++
					batch[i] = store.Stmt{SQL: `INSERT INTO t (id, s) VALUES (?, ?)`, Args: []any{id, "narrow"}}
				}
				mustApply(b, d, batch...)
			}
			b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkQuery(b *testing.B) {
	d := openTest(b, testPath(b), Options{})
	mustApply(b, d, put(1, "x"))
	b.ReportAllocs()
	for b.Loop() {
		value[string](b, d, `SELECT s FROM t WHERE id = ?`, 1)
	}
}

package main_test

import (
	"database/sql"
	"math"
	"slices"
	"testing"
	"time"
)

// backupFires is how late fires were while backups were made, and as long just before each.
type backupFires struct {
	late [2][]time.Duration // without, and with a backup
	bad  [2]int             // spans in which one was later than notLate
	n    [2]int             // spans
}

// add reads how late what started in the spans was.
func (f *backupFires) add(t *testing.T, db *sql.DB, spans []backupSpan) {
	t.Helper()
	for _, s := range spans {
		kind := 0
		if s.backup {
			kind = 1
		}
		var worst time.Duration
		rows, err := db.Query(`SELECT lateness_us FROM all_attempts WHERE number = 1 AND started_at BETWEEN ? AND ?`, s.from.UnixMicro(), s.to.UnixMicro())
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var us int64
			if err := rows.Scan(&us); err != nil {
				t.Fatal(err)
			}
			d := time.Duration(us) * time.Microsecond
			f.late[kind] = append(f.late[kind], d)
			worst = max(worst, d)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		f.n[kind]++
		if worst > notLate {
			f.bad[kind]++
		}
	}
}

// judge says how late they were. That a fire is late once may be another process's doing; that it is so with backups
// clearly more often than without is not.
func (f *backupFires) judge(t *testing.T) {
	t.Helper()
	for kind, name := range []string{"without a backup", "while one was made"} {
		list := f.late[kind]
		if len(list) == 0 {
			t.Errorf("nothing fired %s", name)
			return
		}
		slices.Sort(list)
		at := func(q float64) time.Duration { return list[int(q*float64(len(list)-1))] }
		t.Logf("fires %s: %d; late %s in the middle, p99 %s, p99.9 %s, at most %s; of %d spans %d had one later than %s",
			name, len(list), at(0.5), at(0.99), at(0.999), list[len(list)-1], f.n[kind], f.bad[kind], notLate)
	}
	with, without := float64(f.bad[1]), float64(f.bad[0])
	if with-without > 2.5*math.Sqrt(with+without) || without == 0 && f.n[1] >= 3 && f.bad[1] == f.n[1] {
		t.Errorf("backups delay fires: of %d each, %d spans with a backup and %d without had one later than %s", f.n[1], f.bad[1], f.bad[0], notLate)
	}
}

package main_test

import (
	"database/sql"
	"math"
	"slices"
	"testing"
	"time"
)

// backupFires is how late fires were while backups were made, by backupWays, and as long just before each.
type backupFires struct {
	late [len(backupWays)][]time.Duration
	bad  [len(backupWays)]int // spans in which one was later than notLate
	n    [len(backupWays)]int // spans
}

// add reads how late what started in the spans was.
func (f *backupFires) add(t *testing.T, db *sql.DB, spans []backupSpan) {
	t.Helper()
	for _, s := range spans {
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
			f.late[s.way] = append(f.late[s.way], d)
			worst = max(worst, d)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		f.n[s.way]++
		if worst > notLate {
			f.bad[s.way]++
		}
	}
}

// judge says how late they were. That a fire is late once may be another process's doing; that it is so with backups
// clearly more often than without is not.
func (f *backupFires) judge(t *testing.T) {
	t.Helper()
	backups, bad := 0, 0
	for way, name := range backupWays {
		list := f.late[way]
		if len(list) == 0 {
			if f.n[way] > 0 {
				t.Errorf("nothing fired in %d spans, backup: %s", f.n[way], name)
			}
			continue
		}
		slices.Sort(list)
		at := func(q float64) time.Duration { return list[int(q*float64(len(list)-1))] }
		t.Logf("backup: %s: %d fires; late %s in the middle, p99 %s, p99.9 %s, at most %s; of %d spans %d had one later than %s",
			name, len(list), at(0.5), at(0.99), at(0.999), list[len(list)-1], f.n[way], f.bad[way], notLate)
		if way > 0 {
			backups, bad = backups+f.n[way], bad+f.bad[way]
		}
	}
	with, without := float64(bad), float64(f.bad[0])
	if with-without > 2.5*math.Sqrt(with+without) || without == 0 && backups >= 3 && bad == backups {
		t.Errorf("backups delay fires: of %d each, %d spans with a backup and %d without had one later than %s", backups, bad, f.bad[0], notLate)
	}
}

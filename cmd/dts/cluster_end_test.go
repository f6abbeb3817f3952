package main_test

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
)

// checkEnd judges what is left when all servers have stopped: every node of rqlite is sound and has the same, and
// that is what it should be.
func (c *cluster) checkEnd() {
	c.t.Helper()
	awaitEqual(c.t, c.stores)
	var dbs []*sql.DB
	var sums []map[string]string
	for _, r := range c.stores {
		path := filepath.Join(c.t.TempDir(), r.name+".db")
		if err := r.saveDatabase(path); err != nil {
			c.t.Fatal(err)
		}
		c.saved[r.name] = path
		db, err := sql.Open("sqlite", path)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { db.Close() })
		var said string
		if err := db.QueryRow("PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
			c.violated(i8, "%s: PRAGMA integrity_check says %q, %v", r.name, said, err)
		}
		dbs, sums = append(dbs, db), append(sums, checksums(c.t, db))
	}
	rows := 0
	for table := range sums[0] {
		var n int
		if err := dbs[0].QueryRow("SELECT count(*) FROM " + quoteName(table)).Scan(&n); err != nil {
			c.t.Fatal(err)
		}
		rows += n
	}
	for i, s := range sums[1:] {
		if !maps.Equal(s, sums[0]) {
			c.violated(i8, "%s and %s have not the same: %v and %v", c.stores[0].name, c.stores[i+1].name, sums[0], s)
		}
	}
	c.t.Logf("%d tables with %d rows, the same in 3 replicas", len(sums[0]), rows)

	ended := c.check(dbs[0])
	for r, was := range c.seen.attempts {
		if is := ended[r]; is != was {
			c.violated(i5, "attempt %d of task %s had ended as %s and is now %q", r.attempt, r.task, was, is)
		}
	}
	c.checkLates()
	c.checkOrphans(dbs[0], ended)
	c.checkLogs()
	c.logLateness(dbs[0])
	keys := slices.Sorted(maps.Keys(c.counts))
	for _, k := range keys {
		c.t.Logf("%8d %s", c.counts[k], k)
	}
}

// checkLates: a server that was stopped has at most a request or two between its last check and the socket, which it
// sends when it goes on.
func (c *cluster) checkLates() {
	c.counts["late requests of a stopped process"] = len(c.lates)
	for _, thaw := range c.thaws {
		n := 0
		for _, at := range c.lates {
			if !at.Before(thaw) && at.Sub(thaw) < time.Second {
				n++
			}
		}
		if n > 2 {
			c.violated(i5, "a server that went on at %s sent %d requests for attempts that others had taken over", thaw.UTC().Format("15:04:05.000"), n)
		}
	}
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// checksums returns a checksum of the rows of every table, and one of the schema.
func checksums(t *testing.T, db *sql.DB) map[string]string {
	t.Helper()
	sums := map[string]string{}
	var tables []string
	queryAll(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		tables = append(tables, name)
		return err
	})
	for _, table := range append(tables, "sqlite_master") {
		var columns int
		if err := db.QueryRow(`SELECT count(*) FROM pragma_table_info(?)`, table).Scan(&columns); err != nil {
			t.Fatal(err)
		}
		what, order := "*", make([]string, columns)
		for i := range order {
			order[i] = fmt.Sprint(i + 1)
		}
		if table == "sqlite_master" { // where a table's pages begin may differ
			what, order = "type, name, tbl_name, sql", []string{"1", "2"}
		}
		sum := sha256.New()
		queryAll(t, db, "SELECT "+what+" FROM "+quoteName(table)+" ORDER BY "+strings.Join(order, ", "), func(rows *sql.Rows) error {
			names, err := rows.Columns()
			if err != nil {
				return err
			}
			values := make([]any, len(names))
			into := make([]any, len(names))
			for i := range values {
				into[i] = &values[i]
			}
			err = rows.Scan(into...)
			for _, v := range values {
				fmt.Fprintf(sum, "%T %[1]v\x00", v)
			}
			fmt.Fprint(sum, "\x01")
			return err
		})
		sums[table] = fmt.Sprintf("%x", sum.Sum(nil)[:8])
	}
	return sums
}

// checkOrphans: when all is over nothing runs but what commands that ended by themselves have left behind.
func (c *cluster) checkOrphans(db *sql.DB, ended map[run]string) {
	by := map[run]string{}
	queryAll(c.t, db, `SELECT task_id, number, node FROM all_attempts`, func(rows *sql.Rows) error {
		var r run
		var node string
		err := rows.Scan(&r.task, &r.attempt, &node)
		by[r] = node
		return err
	})
	for _, d := range c.nodes {
		for _, p := range d.processes() {
			c.counts["daemons left by commands"]++
			if state := ended[p.run]; state != string(dts.AttemptSuccess) && state != string(dts.AttemptFailed) {
				c.violated(i10, "process %d of task %s attempt %d (%s), of %s, is alive at the end", p.pid, p.run.task, p.run.attempt, state, d.name)
			} else if by[p.run] != d.id() {
				c.violated(i10, "process %d of task %s attempt %d, of %s, is alive at the end; that attempt ran elsewhere", p.pid, p.run.task, p.run.attempt, d.name)
			}
		}
	}
}

// checkLogs: no server panicked; and what went wrong is in the log, but not a thousand times.
func (c *cluster) checkLogs() {
	for _, d := range c.nodes {
		messages := map[string]int{}
		for line := range strings.Lines(d.log()) {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
				c.violated(clean, "%s: %s", d.name, strings.TrimSuffix(line, "\n"))
			}
			for _, level := range []string{"level=ERROR ", "level=WARN "} {
				if _, rest, ok := strings.Cut(line, level); ok {
					c.counts["log lines, "+strings.TrimSpace(level)]++
					messages[strings.TrimPrefix(strings.TrimSpace(level), "level=")+" "+message(rest)]++
				}
			}
		}
		for _, m := range slices.SortedFunc(maps.Keys(messages), func(a, b string) int { return messages[b] - messages[a] }) {
			if messages[m] > 2 || strings.HasPrefix(m, "ERROR") {
				c.t.Logf("%s logged %4d times: %s", d.name, messages[m], m)
			}
		}
	}
}

// message is the text of a log line after its level.
func message(rest string) string {
	rest = strings.TrimPrefix(rest, "msg=")
	if quoted, ok := strings.CutPrefix(rest, `"`); ok {
		text, _, _ := strings.Cut(quoted, `"`)
		return text
	}
	text, _, _ := strings.Cut(rest, " ")
	return text
}

// logLateness tells how late first attempts were, of tasks that a fault delayed too.
func (c *cluster) logLateness(db *sql.DB) {
	var late []float64
	queryAll(c.t, db, `SELECT lateness_us / 1e6 FROM tasks WHERE lateness_us IS NOT NULL ORDER BY 1`, func(rows *sql.Rows) error {
		var s float64
		err := rows.Scan(&s)
		late = append(late, s)
		return err
	})
	if n := len(late); n > 0 {
		c.t.Logf("lateness of %d tasks: half within %.1f ms, 90 %% within %.1f ms, 99 %% within %.1f s, all within %.1f s", n, 1000*late[n/2], 1000*late[n*9/10], late[n*99/100], late[n-1])
	}
}

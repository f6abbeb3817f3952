package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dts/store"
)

// Fill writes rows into every table of the domain: so many tasks, a tenth of that into each other table. The values mean
// nothing and are of every kind that a column can hold; the same seed makes the same ones. The columns are
// read from the schema, so new ones are filled too. Each shard gets a term and no holder; nodes get nothing.
func Fill(t *testing.T, b store.Backend, seed uint64, tasks int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	type column struct {
		name, kind   string
		notNull, key bool
	}
	tables := map[string][]column{}
	var names []string
	each(t, b, `SELECT m.name, c.name, c.type, c."notnull", c.pk FROM sqlite_master AS m, pragma_table_info(m.name) AS c
		WHERE m.type = 'table' AND m.name NOT IN ('nodes', 'shards', 'batch_assert', 'applied_batch')
		AND EXISTS (SELECT 1 FROM pragma_table_info(m.name) AS i WHERE i.name = 'tenant_id') ORDER BY m.name, c.cid`, func(r store.Rows) error {
		var name string
		var c column
		var notNull, pk int
		err := r.Scan(&name, &c.name, &c.kind, &notNull, &pk)
		if len(tables[name]) == 0 {
			names = append(names, name)
		}
		c.notNull, c.key = notNull > 0 || pk > 0, pk > 0
		tables[name] = append(tables[name], c)
		return err
	})
	for _, name := range names {
		columns := tables[name]
		var list, marks []string
		for _, c := range columns {
			mark := "?"
			if c.kind == "BLOB" {
				mark = "unhex(?)"
			}
			list, marks = append(list, `"`+c.name+`"`), append(marks, mark)
		}
		insert := `INSERT INTO "` + name + `" (` + strings.Join(list, ", ") + `) VALUES (` + strings.Join(marks, ", ") + `)`
		n := max(tasks/10, 3)
		if name == "tasks" {
			n = tasks
		}
		var batch []store.Stmt
		for i := range n {
			args := make([]any, len(columns))
			for j, c := range columns {
				unique := c.key || strings.HasSuffix(c.name, "_id")
				switch {
				case !c.notNull && rng.IntN(4) == 0:
				case c.kind == "INTEGER" && c.key:
					args[j] = int64(3*i + 1)
				case c.kind == "INTEGER":
					args[j] = fillInt(rng)
				case c.kind == "BLOB":
					args[j] = fillHex(rng)
				case unique:
					args[j] = fmt.Sprintf("%s%d", fillText(rng), i)
				default:
					args[j] = fillText(rng)
				}
			}
			if batch = append(batch, store.Stmt{SQL: insert, Args: args}); len(batch) == 200 || i == n-1 {
				apply(t, b, batch...)
				batch = nil
			}
		}
	}
	for shard := range 64 {
		apply(t, b, store.Stmt{SQL: `INSERT INTO shards (shard, tenant_id, node_id, term) VALUES (?, 'system', '', ?)
			ON CONFLICT (shard) DO UPDATE SET term = excluded.term`, Args: []any{shard, rng.IntN(1000)}})
	}
}

// fillInt is an integer that reaches rqlite whole.
func fillInt(rng *rand.Rand) int64 {
	switch rng.IntN(4) {
	case 0:
		return int64(rng.IntN(3)) - 1
	case 1:
		return -rng.Int64N(1 << 53)
	}
	return rng.Int64N(1 << 53)
}

func fillText(rng *rand.Rand) string {
	parts := [...]string{"", "a", "é", "日本", "'", `"`, `\`, "\n", "\t", "{}", "0", "NULL", "🕗", " ", "%s", "\x01", "</b>"}
	var b strings.Builder
	for range rng.IntN(6) {
		b.WriteString(parts[rng.IntN(len(parts))])
	}
	if rng.IntN(500) == 0 {
		b.WriteString(strings.Repeat("long ", 40_000))
	}
	return b.String()
}

func fillHex(rng *rand.Rand) string {
	n := rng.IntN(100)
	if rng.IntN(20) == 0 {
		n = 64 << 10
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return fmt.Sprintf("%X", b)
}

func each(t *testing.T, b store.Backend, sql string, f func(store.Rows) error) {
	t.Helper()
	rows, err := b.Query(t.Context(), store.Linearizable, store.Stmt{SQL: sql})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

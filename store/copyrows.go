package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// Limits of what Copy holds at a time.
const (
	pageRows  = 1000
	pageBytes = 2 << 20
)

// table is a table as Copy reads and writes it. Its SQL is made of the names that the schema gives, so a new column
// cannot be forgotten. Rows are read in pages in the order of the primary key. A row is what the arguments of insert
// are: nil, int64, or string, which for a BLOB is hexadecimal.
type table struct {
	name  string
	types []string // of the columns: INTEGER, TEXT or BLOB
	key   []int    // which columns are the primary key, in its order

	counted               string
	firstSizes, nextSizes string // bytes of each row of the next page, so that it can be cut before it is read
	firstPage, nextPage   string
	last, insert, remove  string
}

// readTable reads the columns of a table from the schema.
func readTable(ctx context.Context, b Backend, name string) (*table, error) {
	t := &table{name: name}
	var columns []string
	byPlace := map[int]int{}
	err := queryRows(ctx, b, Stmt{`SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid`, []any{name}}, func(r scanner) error {
		var column, kind string
		var pk int
		if err := r.Scan(&column, &kind, &pk); err != nil {
			return err
		}
		if kind != "INTEGER" && kind != "TEXT" && kind != "BLOB" {
			return fmt.Errorf("column %s has the type %s, which Copy cannot carry over", column, kind)
		}
		if pk > 0 {
			byPlace[pk] = len(columns)
		}
		columns, t.types = append(columns, `"`+column+`"`), append(t.types, kind)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the columns of the table %s: %w", name, err)
	}
	if len(byPlace) == 0 {
		return nil, fmt.Errorf("the table %s is not there, or has no primary key", name)
	}
	for place := 1; place <= len(byPlace); place++ {
		t.key = append(t.key, byPlace[place])
	}
	t.prepare(columns)
	return t, nil
}

func (t *table) prepare(columns []string) {
	list := func(names []string) string { return strings.Join(names, ", ") }
	marks := func(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }
	var keys, down, read, write, size []string
	for _, k := range t.key {
		keys, down = append(keys, columns[k]), append(down, columns[k]+" DESC")
	}
	for i, c := range columns {
		r, w := c, "?"
		switch t.types[i] {
		case "BLOB":
			r, w = "hex("+c+")", "unhex(?)"
			size = append(size, "2 * coalesce(octet_length("+c+"), 0)")
		case "TEXT":
			size = append(size, "coalesce(octet_length("+c+"), 0)")
		default:
			size = append(size, "8")
		}
		read, write = append(read, r), append(write, w)
	}
	from := ` FROM "` + t.name + `" WHERE true`
	if t.name == "tokens" {
		from = ` FROM "tokens" WHERE NOT ` + isAdminToken
	}
	after := ` AND (` + list(keys) + `) > (` + marks(len(keys)) + `)`
	page := ` ORDER BY ` + list(keys) + ` LIMIT ?`
	sizes, rows := `SELECT `+strings.Join(size, " + ")+from, `SELECT `+list(read)+from
	t.counted = `SELECT count(*)` + from
	t.firstSizes, t.nextSizes = sizes+page, sizes+after+page
	t.firstPage, t.nextPage = rows+page, rows+after+page
	t.last = `SELECT ` + list(keys) + from + ` ORDER BY ` + list(down) + ` LIMIT 1`
	t.insert = `INSERT INTO "` + t.name + `" (` + list(columns) + `) VALUES (` + list(write) + `) ON CONFLICT DO NOTHING`
	t.remove = `DELETE` + from + ` AND (` + list(keys) + `) IN (SELECT ` + list(keys) + from + page + `)`
}

// queryRows runs a statement and calls row for each row of the answer. It sees all that anyone was told is written.
func queryRows(ctx context.Context, b Backend, st Stmt, row func(scanner) error) (err error) {
	rows, err := b.Query(ctx, Linearizable, st)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (t *table) count(ctx context.Context, b Backend) (n int64, err error) {
	err = queryRows(ctx, b, Stmt{t.counted, nil}, func(r scanner) error { return r.Scan(&n) })
	return n, err
}

// lastKey returns the greatest key; nil when there is no row.
func (t *table) lastKey(ctx context.Context, b Backend) (key []any, err error) {
	types := make([]string, len(t.key))
	for i, k := range t.key {
		types[i] = t.types[k]
	}
	err = queryRows(ctx, b, Stmt{t.last, nil}, func(r scanner) (err error) {
		key, err = scanValues(r, types)
		return err
	})
	return key, err
}

// pages calls f with the rows after a key, or with all for nil, page by page.
func (t *table) pages(ctx context.Context, b Backend, after []any, f func(rows [][]any) error) error {
	for {
		sizes, page := Stmt{t.firstSizes, []any{pageRows}}, Stmt{t.firstPage, nil}
		if after != nil {
			sizes = Stmt{t.nextSizes, append(after[:len(after):len(after)], pageRows)}
			page.SQL = t.nextPage
		}
		n, bytes := 0, int64(0)
		err := queryRows(ctx, b, sizes, func(r scanner) error {
			var size int64
			err := r.Scan(&size)
			if bytes += size; n == 0 || bytes <= pageBytes {
				n++
			}
			return err
		})
		if err != nil || n == 0 {
			return err
		}
		page.Args = append(after[:len(after):len(after)], n)
		rows := make([][]any, 0, n)
		err = queryRows(ctx, b, page, func(r scanner) error {
			row, err := scanValues(r, t.types)
			rows = append(rows, row)
			return err
		})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil // they were deleted in between
		}
		if err := f(rows); err != nil {
			return err
		}
		after = nil
		for _, k := range t.key {
			after = append(after, rows[len(rows)-1][k])
		}
	}
}

// scanValues reads a row of these types.
func scanValues(r scanner, types []string) ([]any, error) {
	dest := make([]any, len(types))
	for i, kind := range types {
		if kind == "INTEGER" {
			dest[i] = new(sql.NullInt64)
		} else {
			dest[i] = new(sql.NullString)
		}
	}
	if err := r.Scan(dest...); err != nil {
		return nil, err
	}
	row := make([]any, len(types))
	for i := range dest {
		switch v := dest[i].(type) {
		case *sql.NullInt64:
			if v.Valid {
				row[i] = v.Int64
			}
		case *sql.NullString:
			if v.Valid {
				row[i] = v.String
			}
		}
	}
	return row, nil
}

// digest is what two tables with the same rows have in common.
type digest struct {
	rows int64
	sum  [sha256.Size]byte
}

// String returns the checksum in hexadecimal.
func (d digest) String() string { return hex.EncodeToString(d.sum[:]) }

// digest reads the whole table. read is called after each page.
func (t *table) digest(ctx context.Context, b Backend, read func(rows int)) (d digest, err error) {
	h := sha256.New()
	err = t.pages(ctx, b, nil, func(rows [][]any) error {
		for _, row := range rows {
			for _, v := range row {
				hashValue(h, v)
			}
		}
		d.rows += int64(len(rows))
		read(len(rows))
		return nil
	})
	h.Sum(d.sum[:0])
	return d, err
}

// hashValue adds a value: its kind, its length where that can differ, and the value.
func hashValue(h hash.Hash, v any) {
	var b [9]byte
	switch v := v.(type) {
	case nil:
		h.Write(b[:1])
	case int64:
		b[0] = 1
		binary.BigEndian.PutUint64(b[1:], uint64(v))
		h.Write(b[:])
	case string:
		b[0] = 2
		binary.BigEndian.PutUint64(b[1:], uint64(len(v)))
		h.Write(b[:])
		h.Write([]byte(v))
	}
}

package rqlite

import (
	"bytes"
	"encoding/json"

	"dts/store"
)

// rqlite compiles the text of each statement anew, and writes all of them to its log: of a batch that does the same to
// 2,000 rows, most of the time goes into that. So neighbours are made one statement over a JSON array where
// store.Many knows how, and what store.Once says is sent once.

// merged is a batch as it is sent.
type merged struct {
	stmts []store.Stmt
	first []int // of each statement: the first one of the caller's that it stands for, and those up to the next one's
	n     int   // how many the caller gave
}

// mergeBytes bounds the array of one statement: SQLite refuses a text of more than a billion bytes, and memory is dear.
const mergeBytes = 8 << 20

func merge(batch []store.Stmt) merged {
	m := merged{stmts: make([]store.Stmt, 0, len(batch)), first: make([]int, 0, len(batch)), n: len(batch)}
	var sent map[string]bool // what is needed once
	add := func(i int, s store.Stmt) {
		m.stmts, m.first = append(m.stmts, s), append(m.first, i)
	}
	for i := 0; i < len(batch); {
		s := batch[i]
		if store.Once(s.SQL) {
			key := s.SQL + "\x00" + jsonRow(s.Args)
			if !sent[key] {
				if sent == nil {
					sent = map[string]bool{}
				}
				sent[key] = true
				add(i, s)
			}
			i++
			continue
		}
		many := store.Many(s.SQL)
		if many == "" {
			add(i, s)
			i++
			continue
		}
		// What is sent already does not part neighbours.
		var rows bytes.Buffer
		begin, n := i, 0
		for ; i < len(batch) && rows.Len() < mergeBytes; i++ {
			if store.Once(batch[i].SQL) && sent[batch[i].SQL+"\x00"+jsonRow(batch[i].Args)] {
				continue
			}
			if batch[i].SQL != s.SQL {
				break
			}
			rows.WriteString([...]string{",", "["}[flag(n == 0)])
			rows.WriteString(jsonRow(batch[i].Args))
			n++
		}
		if n == 1 {
			add(begin, s)
			continue
		}
		rows.WriteByte(']')
		add(begin, store.Stmt{SQL: many, Args: []any{rows.String()}})
	}
	return m
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// jsonRow encodes arguments, which checkBatch has looked at.
func jsonRow(args []any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(args); err != nil {
		panic("rqlite: encode arguments that were checked: " + err.Error())
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// results gives each of the caller's statements its own. How many rows a merged one has changed is told of its parts
// only where it is certain.
func (m *merged) results(rows func(i int) int64) []store.Result {
	out := make([]store.Result, m.n)
	for i, at := range m.first {
		end := m.n
		if i+1 < len(m.first) {
			end = m.first[i+1]
		}
		n := rows(i)
		if n != int64(end-at) {
			out[at].RowsAffected = n
			continue
		}
		for j := at; j < end; j++ {
			out[j].RowsAffected = 1
		}
	}
	return out
}

// index says which of the caller's statements was refused; -1 where it is one of several.
func (m *merged) index(i int) int {
	if i < 0 || i >= len(m.first) {
		return -1
	}
	end := m.n
	if i+1 < len(m.first) {
		end = m.first[i+1]
	}
	if end-m.first[i] > 1 {
		return -1
	}
	return m.first[i]
}

package rqlite

import (
	"database/sql/driver"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"dts/store"
)

// maxExact is the first integer that a float64, which numbers of an answer are read as, cannot tell from its neighbour.
// In a request integers of any size are exact.
const maxExact = int64(1) << 53

// checkBatch refuses what would not arrive as it was meant: rqlite reads a request as JSON, and does not roll back
// when a statement with RETURNING fails.
func checkBatch(batch []store.Stmt) error {
	for i := range batch {
		if err := checkStmt(&batch[i]); err != nil {
			return &store.RefusedError{Index: i, Err: err}
		}
	}
	return nil
}

func checkStmt(s *store.Stmt) error {
	if strings.TrimSpace(s.SQL) == "" {
		return errors.New("an empty statement")
	}
	if strings.Contains(strings.ToLower(s.SQL), "returning") {
		return errors.New("RETURNING in a batch: rqlite would not roll the batch back if it fails; read back what the batch has written")
	}
	return checkArgs(s.Args)
}

func checkArgs(args []any) error {
	for j, a := range args {
		switch v := a.(type) {
		case nil, string, bool, int, int64:
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("argument %d is %v; want a finite number", j+1, v)
			}
		default:
			return fmt.Errorf("argument %d is a %T; want nil, bool, int, int64, float64 or string (a blob travels as hex text through unhex)", j+1, a)
		}
	}
	return nil
}

// encode returns a statement as it is sent. rqlite takes a text that looks like a blob literal, x'…', for a blob:
// such an argument travels as a blob indeed, and the statement turns it into text again.
func encode(sql string, args []any) (string, []any) {
	var blobs map[int]bool
	for i, a := range args {
		s, ok := a.(string)
		if !ok || !looksLikeBlob(s) {
			continue
		}
		if blobs == nil {
			blobs = make(map[int]bool)
			args = append([]any(nil), args...)
		}
		blobs[i+1] = true
		args[i] = "x'" + hex.EncodeToString([]byte(s)) + "'"
	}
	if blobs != nil {
		sql = castParams(sql, blobs)
	}
	return sql, args
}

// looksLikeBlob may be true of too many texts: then their way is only longer.
func looksLikeBlob(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) >= 3 && (s[0] == 'x' || s[0] == 'X') && s[1] == '\'' && s[len(s)-1] == '\''
}

// castParams wraps the parameters with these numbers, from 1, in a CAST to text.
func castParams(sql string, numbers map[int]bool) string {
	var b strings.Builder
	highest := 0
	for i := 0; i < len(sql); {
		end := i + tokenLen(sql[i:])
		token := sql[i:end]
		i = end
		if token[0] != '?' {
			b.WriteString(token)
			continue
		}
		n := highest + 1
		if len(token) > 1 {
			n, _ = strconv.Atoi(token[1:])
		}
		highest = max(highest, n)
		if numbers[n] {
			token = "CAST(" + token + " AS TEXT)"
		}
		b.WriteString(token)
	}
	return b.String()
}

// tokenLen is how long the first token of a SQL text is, as far as finding parameters needs it: a literal, a quoted
// name, a comment, a parameter, or else one byte. The text is not empty.
func tokenLen(s string) int {
	until := func(from int, end string) int {
		if i := strings.Index(s[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(s)
	}
	switch {
	case s[0] == '\'' || s[0] == '"' || s[0] == '`':
		return until(1, s[:1]) // a doubled quote is two tokens, which comes to the same
	case s[0] == '[':
		return until(1, "]")
	case strings.HasPrefix(s, "--"):
		return until(2, "\n")
	case strings.HasPrefix(s, "/*"):
		return until(2, "*/")
	case s[0] == '?':
		n := 1
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		return n
	}
	return 1
}

// decode turns a value of an answer into what SQLite has stored. kind is the column's declared type or, where it has
// none, that of its first value, in lower case.
func decode(v any, kind string) (driver.Value, error) {
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		if kind != "blob" {
			return v, nil
		}
		b, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			return nil, fmt.Errorf("decode a blob: %w", err)
		}
		return b, nil
	case float64:
		if kind == "real" || v != math.Trunc(v) {
			return v, nil
		}
		if math.Abs(v) >= float64(maxExact) {
			if kind == "integer" {
				return nil, errors.New("an integer is not smaller than 2^53, so its digits were lost on the way; ask for CAST(… AS TEXT)")
			}
			return v, nil
		}
		return int64(v), nil
	}
	return nil, fmt.Errorf("a value of type %T in an answer", v)
}

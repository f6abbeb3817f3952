package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"dts"
)

// Limits of request bodies, in bytes.
const (
	MaxBody     = 2 << 20  // everything but POST /tasks/bulk, and each task in it
	MaxBulkBody = 32 << 20 // POST /tasks/bulk
)

// mediaOf returns the type of a body: JSON, or the other one that the route takes, or "" where there is none.
func mediaOf(r *http.Request, other string) (string, error) {
	ct := r.Header.Get("Content-Type")
	if ct == "" || r.ContentLength == 0 {
		return "", nil
	}
	t, _, err := mime.ParseMediaType(ct)
	switch {
	case err == nil && (t == jsonType || strings.HasSuffix(t, "+json")):
		return jsonType, nil
	case err == nil && t == other:
		return other, nil
	}
	or := ""
	if other != "" {
		or = " or " + other
	}
	return "", WithStatus(http.StatusUnsupportedMediaType,
		dts.Errorf(dts.ErrInvalid, "the body must be JSON%s; send it with the header Content-Type: application/json%s", or, or))
}

// readBody reads a body of at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	buf := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge(limit)
		}
		if ne, ok := errors.AsType[net.Error](err); errors.Is(err, os.ErrDeadlineExceeded) || ok && ne.Timeout() {
			return nil, WithStatus(http.StatusRequestTimeout, dts.Errorf(dts.ErrUnavailable, "the body did not arrive in time"))
		}
		return nil, WithStatus(http.StatusBadRequest, dts.Errorf(dts.ErrInvalid, "the body could not be read to its end"))
	}
	return buf.Bytes(), nil
}

func tooLarge(limit int64) error {
	return dts.Errorf(dts.ErrTooLarge, "the body is larger than %d MiB (%d bytes)", limit>>20, limit)
}

// decode reads a JSON object into the struct that v points to. It refuses what the struct does not have,
// and its error names every field that is wrong. A correct body is parsed once; only a wrong one is looked
// at a second time to find out all that is wrong with it.
func decode(body []byte, v any) error {
	if !utf8.Valid(body) {
		return malformed("the body is not valid UTF-8 (at byte %d)", firstInvalid(body))
	}
	text := bytes.TrimSpace(body)
	if len(text) == 0 {
		return malformed("the body is empty; a JSON object is needed")
	}
	if text[0] != '{' {
		return checkSyntax(body)
	}
	err := decodeStrict(body, v)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*dts.Error](err); ok && e.Code == dts.ErrTooLarge {
		return err
	}
	if syntax := checkSyntax(body); syntax != nil {
		return syntax
	}
	return &dts.Error{Code: dts.ErrInvalid, Message: "the request is not valid", Fields: explain(body, v, err)}
}

// decodeStrict decodes one JSON value, and nothing after it, into v.
func decodeStrict(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

// checkSyntax returns an error that says where body stops being one JSON object, or nil if it is one.
func checkSyntax(body []byte) error {
	var whole json.RawMessage
	err := json.Unmarshal(body, &whole)
	if err == nil {
		if body := bytes.TrimSpace(body); body[0] != '{' {
			return malformed("the body must be a JSON object, not %s", kindOf(body[0]))
		}
		return nil
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, column := position(body, e.Offset)
		return malformed("the body is not valid JSON: line %d, column %d: %s", line, column, e)
	}
	return malformed("the body is not valid JSON")
}

func malformed(format string, args ...any) error {
	return WithStatus(http.StatusBadRequest, dts.Errorf(dts.ErrInvalid, format, args...))
}

// position returns the line and column, from 1 and in bytes, of the last of the first n bytes.
func position(body []byte, n int64) (line, column int) {
	head := body[:min(max(n-1, 0), int64(len(body)))]
	return 1 + bytes.Count(head, []byte("\n")), len(head) - bytes.LastIndexByte(head, '\n')
}

func firstInvalid(body []byte) int {
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(body)
}

// kindOf names the kind of JSON value that begins with c.
func kindOf(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// TaskList is the list of a bulk request. It stops at the first task beyond dts.MaxBulk, so that a body of
// a few megabytes cannot become gigabytes of tasks.
type TaskList []TaskRequest

// UnmarshalJSON implements json.Unmarshaler.
func (l *TaskList) UnmarshalJSON(b []byte) error {
	*l = nil
	return eachItem(b, func(i int, item json.RawMessage) error {
		if i == dts.MaxBulk {
			return dts.Errorf(dts.ErrTooLarge, "there are more than %d tasks; send them in several requests", dts.MaxBulk)
		}
		if len(item) > MaxBody {
			return dts.Errorf(dts.ErrTooLarge, "tasks[%d] is larger than %d MiB", i, MaxBody>>20)
		}
		var t TaskRequest
		if err := decodeStrict(item, &t); err != nil {
			return fmt.Errorf("tasks[%d]: %w", i, err)
		}
		*l = append(*l, t)
		return nil
	})
}

// eachItem calls f for each value of a JSON array, until f fails.
func eachItem(b []byte, f func(i int, item json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.New("must be an array")
	}
	for i := 0; d.More(); i++ {
		var item json.RawMessage
		if err := d.Decode(&item); err != nil {
			return err
		}
		if err := f(i, item); err != nil {
			return err
		}
	}
	return nil
}

package peers

import (
	"encoding/gob"
	"errors"
	"io"
	"reflect"
	"strings"
	"time"

	"dts"
)

// protocol is the version of what servers say to each other. It changes when an older server would misunderstand;
// fields that an older one can do without do not change it, because gob leaves out what it does not know.
const protocol = "3"

const (
	headerProtocol = "Dts-Protocol"
	headerMethod   = "Dts-Method"
	headerTo       = "Dts-To" // the id of the server that is meant: an address can change its owner
	gobType        = "application/x-gob"
	callPath       = "/cluster/call"
	eventsPath     = "/cluster/events"
)

// request is the body of every call. Each method uses some of the fields. Where Count is not 0, that many taskForm
// follow in the same stream: one by one, so that a short body cannot ask for much memory.
type request struct {
	Tenant, ID, Actor string
	Verb              dts.Verb
	Until             time.Time
	Note              string
	CatchUp           bool
	Backfill          dts.BackfillRequest
	Bulk              dts.BulkChange
	Count             int
	Recurring         *recurringForm
	TaskPatch         *taskPatchForm
	RecurringPatch    *recurringPatchForm

	DependsOn []dts.DependsOn
	Parent    string

	Poke bool
	IDs  []string

	Number int
	Offset int64
	Wait   time.Duration
}

// answer is the body of every answer.
type answer struct {
	Failure  *failure
	ID       string
	Bulk     dts.BulkResult
	Made     []made
	Backfill dts.BackfillAnswer

	Found bool // the output is here
	Chunk []byte
	Next  int64
	Done  bool

	Now time.Time // of the wall clock

	Loads map[string]dts.QueueLoad // by queue
}

// made is what became of one task that was to be created.
type made struct {
	ID      string
	Existed bool
	Shard   int
	Seq     int64
}

// gob does not tell a pointer to a zero value from a nil one, nor an empty list from none; to a patch that makes all
// the difference. So a form carries the names of such fields beside the value.
type (
	taskForm struct {
		Value dts.Task
		Empty []string
	}
	recurringForm struct {
		Value dts.RecurringTask
		Empty []string
	}
	taskPatchForm struct {
		Value dts.TaskPatch
		Empty []string
	}
	recurringPatchForm struct {
		Value dts.RecurringPatch
		Empty []string
	}
)

// empties returns the names of the fields of the struct that v points to which are there, but empty. Fields of
// fields have their names joined by dots.
func empties(v any) []string { return findEmpty(reflect.ValueOf(v).Elem(), "", nil) }

func findEmpty(v reflect.Value, prefix string, found []string) []string {
	for i := range v.NumField() {
		f, name := v.Field(i), prefix+v.Type().Field(i).Name
		switch f.Kind() {
		case reflect.Map, reflect.Slice:
			if !f.IsNil() && f.Len() == 0 {
				found = append(found, name)
			}
		case reflect.Pointer:
			if f.IsNil() {
				continue
			}
			if e := f.Elem(); e.IsZero() || e.Kind() == reflect.Slice && e.Len() == 0 {
				found = append(found, name)
			}
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]() {
			found = findEmpty(f, name+".", found)
		}
	}
	return found
}

// restore makes the named fields of the struct that v points to be there, if they are not. Names that it does not
// know come from another version and are left alone.
func restore(v any, names []string) {
	for _, name := range names[:min(len(names), 100)] {
		f, ok := fieldOf(reflect.ValueOf(v).Elem(), name)
		switch {
		case !ok:
		case f.Kind() == reflect.Pointer && f.IsNil():
			f.Set(reflect.New(f.Type().Elem()))
			if e := f.Elem(); e.Kind() == reflect.Slice {
				e.Set(reflect.MakeSlice(e.Type(), 0, 0))
			}
		case f.Kind() == reflect.Map && f.IsNil():
			f.Set(reflect.MakeMap(f.Type()))
		case f.Kind() == reflect.Slice && f.IsNil():
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		}
	}
}

// fieldOf returns the field of a struct with a name as empties gives them.
func fieldOf(f reflect.Value, name string) (field reflect.Value, ok bool) {
	for part := range strings.SplitSeq(name, ".") {
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.Kind() != reflect.Struct {
			return f, false
		}
		if f = f.FieldByName(part); !f.IsValid() || !f.CanSet() {
			return f, false
		}
	}
	return f, true
}

// failure is an error on its way to another server.
type failure struct {
	Code    dts.Code
	Message string
	Fields  []dts.FieldError
	Cause   string // for the log
}

const (
	maxMessage = 4 << 10
	maxCause   = 300
	maxFields  = 200
)

func failureOf(err error) *failure {
	e, ok := errors.AsType[*dts.Error](err)
	if !ok {
		return &failure{Code: dts.ErrInternal, Cause: clip(err.Error(), maxCause)}
	}
	f := &failure{Code: e.Code, Message: clip(e.Message, maxMessage), Fields: e.Fields[:min(len(e.Fields), maxFields)]}
	if e.Err != nil {
		f.Cause = clip(e.Err.Error(), maxCause)
	}
	return f
}

// error makes the error of it again, at the server that asked.
func (f *failure) error(n dts.Node) error {
	cause := "server " + n.ID
	if f.Cause != "" {
		cause += ": " + clip(f.Cause, maxCause)
	}
	e := &dts.Error{Code: f.Code, Message: clip(f.Message, maxMessage), Fields: f.Fields, Err: errors.New(cause)}
	if e.Code == "" {
		e.Code = dts.ErrInternal
	}
	return e
}

// clip shortens a text to n bytes of valid UTF-8.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// encode writes a request, and the tasks that belong to it.
func encode(w io.Writer, q *request, tasks []*dts.Task) error {
	q.Count = len(tasks)
	enc := gob.NewEncoder(w)
	if err := enc.Encode(q); err != nil {
		return err
	}
	for _, t := range tasks {
		f := taskForm{Value: *t}
		f.Value.Node, f.Value.PickedAt = "", time.Time{} // a claim of the server that gave it away
		f.Empty = empties(&f.Value)
		if err := enc.Encode(&f); err != nil {
			return err
		}
	}
	return nil
}

// decode reads a request, and the tasks that belong to it.
func decode(r io.Reader) (q *request, tasks []*dts.Task, err error) {
	dec := gob.NewDecoder(r)
	q = &request{}
	if err := dec.Decode(q); err != nil {
		return nil, nil, err
	}
	if q.Count < 0 || q.Count > dts.MaxBulk {
		return nil, nil, dts.Errorf(dts.ErrTooLarge, "the call holds %d tasks; at most %d are possible", q.Count, dts.MaxBulk)
	}
	for range q.Count {
		var f taskForm
		if err := dec.Decode(&f); err != nil {
			return nil, nil, err
		}
		restore(&f.Value, f.Empty)
		tasks = append(tasks, &f.Value)
	}
	return q, tasks, nil
}

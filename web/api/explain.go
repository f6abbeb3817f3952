package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dts"
)

// explain finds all that is wrong with a JSON object that could not be decoded into the struct v points
// to. cause is why not; it is used when nothing else is found.
func explain(body []byte, v any, cause error) []dts.FieldError {
	var x explainer
	x.value(json.RawMessage(body), reflect.TypeOf(v).Elem(), "")
	if len(x.list) == 0 {
		x.add("", "%s", strings.TrimPrefix(cause.Error(), "json: "))
	}
	return x.list
}

type explainer struct {
	list []dts.FieldError
}

func (x *explainer) add(path, format string, args ...any) {
	x.list = append(x.list, dts.FieldError{Field: path, Message: fmt.Sprintf(format, args...)})
}

// full: more than a problem shows has been found.
func (x *explainer) full() bool { return len(x.list) > maxProblemFields }

var (
	rawType         = reflect.TypeFor[json.RawMessage]()
	taskListType    = reflect.TypeFor[TaskList]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// value compares one JSON value, known to be well-formed, with the Go type that it is for.
func (x *explainer) value(raw json.RawMessage, t reflect.Type, path string) {
	raw = bytes.TrimSpace(raw)
	if x.full() || len(raw) == 0 {
		return
	}
	if t == rawType || raw[0] == 'n' && !reflect.PointerTo(t).Implements(unmarshalerType) {
		return
	}
	if t == taskListType {
		x.array(raw, reflect.TypeFor[TaskRequest](), path)
		return
	}
	if t.Kind() == reflect.Pointer {
		x.value(raw, t.Elem(), path)
		return
	}
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		if err := reflect.New(t).Interface().(json.Unmarshaler).UnmarshalJSON(raw); err != nil {
			x.add(path, "%s", err)
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		x.object(raw, t, path)
	case reflect.Map:
		if !x.want(raw, path, "an object") {
			return
		}
		eachMember(raw, func(name string, item json.RawMessage) {
			x.value(item, t.Elem(), join(path, clip(name)))
		})
	case reflect.Slice:
		x.array(raw, t.Elem(), path)
	case reflect.String:
		x.want(raw, path, "a string")
	case reflect.Bool:
		x.want(raw, path, "true or false")
	case reflect.Int, reflect.Int64:
		if x.want(raw, path, "a number") && json.Unmarshal(raw, reflect.New(t).Interface()) != nil {
			x.add(path, "must be a whole number within 64 bits")
		}
	case reflect.Float64:
		if x.want(raw, path, "a number") && json.Unmarshal(raw, reflect.New(t).Interface()) != nil {
			x.add(path, "is out of range")
		}
	}
}

func (x *explainer) want(raw json.RawMessage, path, kind string) bool {
	if is := kindOf(raw[0]); is != kind {
		x.add(path, "must be %s, not %s", kind, is)
		return false
	}
	return true
}

func (x *explainer) array(raw json.RawMessage, t reflect.Type, path string) {
	if !x.want(raw, path, "an array") {
		return
	}
	eachItem(raw, func(i int, item json.RawMessage) error {
		x.value(item, t, path+"["+strconv.Itoa(i)+"]")
		if x.full() {
			return errors.New("enough")
		}
		return nil
	})
}

func (x *explainer) object(raw json.RawMessage, t reflect.Type, path string) {
	if !x.want(raw, path, "an object") {
		return
	}
	fields := fieldsOf(t)
	eachMember(raw, func(name string, item json.RawMessage) {
		if x.full() {
			return
		}
		if i := slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(f.name, name) }); i >= 0 {
			x.value(item, fields[i].t, join(path, fields[i].name))
			return
		}
		x.add(join(path, clip(name)), "%s", unknownField(name, t, fields))
	})
}

// unknownField says why a field is not known, and which one may be meant.
func unknownField(name string, t reflect.Type, fields []field) string {
	lower := strings.ToLower(name)
	switch answer := answerTypes[t]; {
	case lower == "created_by":
		return "is who signed in; leave it out"
	case answer != nil && slices.ContainsFunc(fieldsOf(answer), func(f field) bool { return f.name == lower }):
		return "is set by dts; leave it out"
	case inTarget[lower] && slices.ContainsFunc(fields, func(f field) bool { return f.name == "target_config" }):
		return "is not a field here; it belongs in target_config"
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return "is not a known field" + didYouMean(lower, names)
}

// answerTypes says which type answers a request. Its other fields are known, but not for the caller to set.
var answerTypes = map[reflect.Type]reflect.Type{
	reflect.TypeFor[TaskRequest]():      reflect.TypeFor[dts.Task](),
	reflect.TypeFor[WorkflowRequest]():  reflect.TypeFor[dts.Task](),
	reflect.TypeFor[TaskPatch]():        reflect.TypeFor[dts.Task](),
	reflect.TypeFor[RecurringRequest](): reflect.TypeFor[dts.RecurringTask](),
	reflect.TypeFor[RecurringPatch]():   reflect.TypeFor[dts.RecurringTask](),
	reflect.TypeFor[CalendarRequest]():  reflect.TypeFor[dts.Calendar](),
	reflect.TypeFor[BlackoutRequest]():  reflect.TypeFor[dts.Blackout](),
	reflect.TypeFor[QueueRequest]():     reflect.TypeFor[dts.Queue](),
}

// inTarget holds the names that people put beside target_config although they belong in it.
var inTarget = map[string]bool{
	"url": true, "method": true, "headers": true, "body": true, "argv": true, "shell": true, "env": true,
	"dir": true, "user": true, "stdin": true, "expect_status": true, "expect_body": true, "shell_path": true,
}

// didYouMean suggests the names that are close to a wrong one.
func didYouMean(wrong string, names []string) string {
	best, distance := "", max(2, len(wrong)/3)+1
	bare := strings.ReplaceAll(wrong, "_", "")
	for _, n := range names {
		d := editDistance(wrong, n)
		if len(bare) >= 3 && (strings.HasPrefix(strings.ReplaceAll(n, "_", ""), bare) || strings.HasSuffix(n, "_"+wrong) || strings.HasPrefix(wrong, n+"_")) {
			d = min(d, 2)
		}
		if d < distance && d < len(n) {
			best, distance = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// editDistance is the Levenshtein distance of two short names; for long ones it is simply large.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// field is one JSON field of a struct.
type field struct {
	name string
	t    reflect.Type
}

// fieldsOf lists the JSON fields of a struct, those of embedded structs included.
func fieldsOf(t reflect.Type) []field {
	var list []field
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" || name == "" {
			continue
		}
		list = append(list, field{name, f.Type})
	}
	return list
}

// eachMember calls f for each member of a well-formed JSON object, in the order in which they come.
func eachMember(raw json.RawMessage, f func(name string, item json.RawMessage)) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		var item json.RawMessage
		if err != nil || !ok || d.Decode(&item) != nil {
			return
		}
		f(name, item)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// clip shortens a name that a user sent before it is quoted back.
func clip(s string) string {
	const n = 60
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

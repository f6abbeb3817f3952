package peers

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
)

// Every field arrives as it was sent, also one that is there but empty: a patch that sets a name to "" is not one that
// leaves it alone. A field that is added one day is tried too.
func TestFormsArriveWhole(t *testing.T) {
	for _, tt := range []struct {
		value any
		trip  func(v any) any
	}{
		{&dts.Task{}, func(v any) any {
			var b bytes.Buffer
			if err := encode(&b, &request{}, []*dts.Task{v.(*dts.Task)}); err != nil {
				t.Fatal(err)
			}
			_, list, err := decode(&b)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			return list[0]
		}},
		{&dts.RecurringTask{}, func(v any) any {
			k := v.(*dts.RecurringTask)
			f := travel(t, &request{Recurring: &recurringForm{*k, empties(k)}}).Recurring
			restore(&f.Value, f.Empty)
			return &f.Value
		}},
		{&dts.TaskPatch{}, func(v any) any {
			p := v.(*dts.TaskPatch)
			f := travel(t, &request{TaskPatch: &taskPatchForm{*p, empties(p)}}).TaskPatch
			restore(&f.Value, f.Empty)
			return &f.Value
		}},
		{&dts.RecurringPatch{}, func(v any) any {
			p := v.(*dts.RecurringPatch)
			f := travel(t, &request{RecurringPatch: &recurringPatchForm{*p, empties(p)}}).RecurringPatch
			restore(&f.Value, f.Empty)
			return &f.Value
		}},
	} {
		for _, how := range []string{"absent", "empty", "full"} {
			v := reflect.New(reflect.TypeOf(tt.value).Elem())
			fill(t, v.Elem(), how)
			if k, is := v.Interface().(*dts.Task); is {
				k.Node, k.PickedAt = "", time.Time{} // do not travel
			}
			if diff := cmp.Diff(v.Interface(), tt.trip(v.Interface())); diff != "" {
				t.Errorf("%T, %s (-sent +got):\n%s", tt.value, how, diff)
			}
		}
	}
}

func travel(t *testing.T, q *request) *request {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, q, nil); err != nil {
		t.Fatal(err)
	}
	q, _, err := decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// fill gives every field a value; with how "empty", pointers, maps and lists are there but hold nothing.
func fill(t *testing.T, v reflect.Value, how string) {
	if how == "absent" {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			if how == "full" {
				v.Set(reflect.ValueOf(now))
			}
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), how)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), how)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if how == "full" {
			v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf("v"))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 1))
		if how == "full" {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(t, v.Index(0), how)
		}
	case reflect.String:
		if how == "full" {
			v.SetString("text")
		}
	case reflect.Int, reflect.Int64:
		if how == "full" {
			v.SetInt(7)
		}
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Float64:
		if how == "full" {
			v.SetFloat(7.5)
		}
	case reflect.Bool:
		v.SetBool(how == "full")
	default:
		t.Fatalf("a field of type %s: teach this test, and empties, about it", v.Type())
	}
}

func TestRestoreKnowsItsLimits(t *testing.T) {
	var p dts.TaskPatch
	restore(&p, []string{"", ".", "Name", "TaskTemplatePatch.Name.x", "RunAt.wall", "RunAt.x.y", "Retry.Jitter", "TaskTemplatePatch.Retry", "nothing"})
	if p.RunAt != nil || p.Retry == nil || p.Retry.Jitter != nil {
		t.Errorf("%+v", p)
	}
	restore(&p, make([]string, 100_000))
}

func TestFailuresAreShort(t *testing.T) {
	long := strings.Repeat("ä", 100_000)
	e := &dts.Error{Code: dts.ErrInvalid, Message: long, Fields: make([]dts.FieldError, 10_000), Err: errors.New(long)}
	got, _ := errors.AsType[*dts.Error](failureOf(e).error(dts.Node{ID: "n2"}))
	if len(got.Message) > maxMessage+10 || len(got.Fields) != maxFields || len(got.Err.Error()) > maxCause+40 {
		t.Errorf("%d, %d, %d", len(got.Message), len(got.Fields), len(got.Err.Error()))
	}
	if err := (&failure{}).error(dts.Node{}); dts.CodeOf(err) != dts.ErrInternal {
		t.Error(err)
	}
}

// Whatever another program sends, decoding it neither panics nor takes more than a multiple of its length.
func FuzzDecode(f *testing.F) {
	yes, name := true, ""
	for _, q := range []*request{
		{}, {Tenant: "default", ID: dts.NewID(now), Verb: dts.Cancel, Actor: "alice"},
		{Bulk: dts.BulkChange{Verb: dts.BulkRetry, Filter: dts.TaskFilter{IDs: []string{"a", "b"}, Labels: map[string]string{"a": "b"}, From: now}}},
		{Recurring: &recurringForm{Value: dts.RecurringTask{ID: "a", Spec: dts.Spec{Labels: map[string]string{"x": "y"}, Retry: dts.Retry{Jitter: &yes, DelaysMS: []int64{1, 2}}}}, Empty: []string{"Labels"}}},
		{TaskPatch: &taskPatchForm{Value: dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name, TargetConfig: json.RawMessage(`{}`)}}, Empty: []string{"TaskTemplatePatch.Name"}}},
	} {
		for _, tasks := range [][]*dts.Task{nil, {{ID: "a", CreatedAt: now}, {ID: "b", LatenessUS: new(int64)}}} {
			var b bytes.Buffer
			if err := encode(&b, q, tasks); err != nil {
				f.Fatal(err)
			}
			f.Add(b.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			t.Skip("longer than 64 KiB: how long a body may be is checked before it is decoded")
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		q, tasks, err := decode(bytes.NewReader(b))
		runtime.ReadMemStats(&after)
		// gob allocates up to 10 MiB ahead of what it has read, whatever a length says.
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20+1000*uint64(len(b)) {
			t.Errorf("%d bytes took %d to decode", len(b), took)
		}
		if err == nil && len(tasks) != q.Count {
			t.Errorf("%d tasks of %d", len(tasks), q.Count)
		}
		var a answer
		_ = gob.NewDecoder(bytes.NewReader(b)).Decode(&a)
	})
}

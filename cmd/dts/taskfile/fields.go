package taskfile

import (
	"reflect"
	"strings"
)

// field is a key of a mapping and the part of a Go struct that it fills.
type field struct {
	name  string // as the API calls it
	other string // another way to write it, "" for none
	span  bool   // other is written with a unit, such as 30s
	index []int
	t     reflect.Type
	enum  []string
	doc   string
}

// fieldsOf lists the fields of a struct, those of embedded structs in their place. A field of the outer struct hides
// those of the same name in embedded ones, as in package json.
func fieldsOf(t reflect.Type) []field {
	var list []field
	at := map[string]int{}
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "" || name == "-" || hidden(t, name) {
			continue
		}
		f := field{name: name, index: sf.Index, t: sf.Type, doc: sf.Tag.Get("doc")}
		if e := sf.Tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, ",")
		}
		f.other, f.span = otherName(name)
		if i, there := at[name]; there {
			if len(list[i].index) > len(f.index) {
				list[i] = f
			}
			continue
		}
		at[name] = len(list)
		list = append(list, f)
	}
	return list
}

// otherName is the second way to write a field: without the unit that its name ends in, or shorter.
func otherName(name string) (other string, span bool) {
	switch name {
	case "interval_seconds":
		return "every", true
	case "run_at":
		return "at", false
	}
	for _, unit := range []string{"_seconds", "_ms"} {
		if short, ok := strings.CutSuffix(name, unit); ok {
			return short, true
		}
	}
	return "", false
}

// names lists all ways to write the fields.
func names(fields []field) []string {
	var list []string
	for _, f := range fields {
		if list = append(list, f.name); f.other != "" {
			list = append(list, f.other)
		}
	}
	return list
}

// find returns the field of a name. spelled reports whether the name is its other one.
func find(fields []field, name string) (f *field, spelled bool) {
	for i := range fields {
		switch f := &fields[i]; name {
		case f.name:
			return f, false
		case f.other:
			return f, name != ""
		}
	}
	return nil, false
}

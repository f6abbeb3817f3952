package taskfile

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// object is a part of a JSON Schema.
type object map[string]any

// Schema is the form of a file as a JSON Schema, draft 2020-12. It comes from the types that Parse fills, so that it has every
// key that Parse knows and no other. Parse checks more: what must not stand together, names, expressions and ranges.
func Schema() ([]byte, error) {
	s := schemas{defs: object{}}
	top := s.object(reflect.TypeFor[fileForm]())
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "Tasks of dts"
	top["description"] = "What dts apply keeps on a server, and dts ci runs"
	top["patternProperties"] = object{"^x-": object{"description": "anything, to have anchors in"}}
	top["$defs"] = s.defs
	return json.MarshalIndent(top, "", "  ")
}

// schemas collects the schemas of the forms that are used in more than one place.
type schemas struct {
	defs object
}

// needed are the keys that a form cannot do without.
func needed(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[taskForm](), reflect.TypeFor[stepForm]():
		return []string{"name"}
	case reflect.TypeFor[workflowForm]():
		return []string{"name", "steps"}
	}
	return nil
}

// object is the schema of a mapping whose keys are known.
func (s *schemas) object(t reflect.Type) object {
	properties := object{}
	for _, f := range fieldsOf(t) {
		p := s.of(f.t, f.enum)
		p = described(p, f.doc)
		properties[f.name] = p
		switch {
		case f.span:
			one := object{"type": "string", "examples": []string{"30s", "5m", "1h30m", "2d"}}
			if f.t.Kind() == reflect.Slice {
				one = object{"type": "array", "items": one}
			}
			properties[f.other] = described(one, "with a unit: "+f.doc)
		case f.other != "":
			properties[f.other] = p
		}
	}
	o := object{"type": "object", "properties": properties, "additionalProperties": false}
	if n := needed(t); n != nil {
		o["required"] = n
	}
	return o
}

// described adds what a field is for.
func described(o object, doc string) object {
	if doc == "" {
		return o
	}
	if _, ref := o["$ref"]; !ref {
		o["description"] = doc
		return o
	}
	return object{"$ref": o["$ref"], "description": doc}
}

// plain is a text where YAML's numbers and booleans mean their own text, too.
func plain() object { return object{"type": []string{"string", "number", "boolean"}} }

// of is the schema of a value of a type, one of the words of enum where there are any.
func (s *schemas) of(t reflect.Type, enum []string) object {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return object{"type": "object"}
	case reflect.TypeFor[commandLine]():
		return object{"anyOf": []object{
			{"type": "array", "items": plain(), "minItems": 1, "description": "a program and its arguments"},
			{"type": "string", "minLength": 1, "description": "a line for the shell"},
		}}
	case reflect.TypeFor[dependency]():
		return object{"anyOf": []object{plain(), s.ref(reflect.TypeFor[dependencyForm]())}}
	}
	if p, ok := reflect.Zero(t).Interface().(huma.SchemaProvider); ok {
		return provided(p)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), enum)
	case reflect.Struct:
		return s.ref(t)
	case reflect.Map:
		item := s.of(t.Elem(), nil)
		if t.Elem().Kind() == reflect.String {
			item = plain()
		}
		return object{"type": "object", "additionalProperties": item}
	case reflect.Slice:
		item := s.of(t.Elem(), enum)
		if t.Elem().Kind() == reflect.String && len(enum) == 0 {
			item = plain()
		}
		return object{"type": "array", "items": item}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	}
	if len(enum) == 0 {
		return object{"type": "string"}
	}
	words := slices.Clone(enum)
	for _, w := range enum {
		w = strings.ToLower(w)
		words = append(words, w, strings.ReplaceAll(w, "_", "-"))
	}
	slices.Sort(words)
	words = slices.Compact(words)
	return object{"enum": words}
}

// provided is the schema that a type of the API has of its own.
func provided(p huma.SchemaProvider) object {
	x := p.Schema(nil)
	x.Nullable = false
	b, err := json.Marshal(x)
	o := object{}
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	if err != nil {
		panic("taskfile: " + err.Error()) // of constants
	}
	return o
}

// ref is a reference to the schema of a struct, which it adds to $defs.
func (s *schemas) ref(t reflect.Type) object {
	name := t.Name()
	for _, end := range []string{"Form", "Request"} {
		name = strings.TrimSuffix(name, end)
	}
	name = strings.ToLower(name[:1]) + name[1:]
	if _, there := s.defs[name]; !there {
		s.defs[name] = nil
		s.defs[name] = s.object(t)
	}
	return object{"$ref": "#/$defs/" + name}
}

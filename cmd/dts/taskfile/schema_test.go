package taskfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func schema(t *testing.T) object {
	t.Helper()
	b, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// The schema and the parser know the same keys: each key of the schema is none that Parse calls unknown, and each key that Parse
// finds in a form is in the schema.
func TestSchemaKeys(t *testing.T) {
	s := schema(t)
	defs := s["$defs"].(map[string]any)
	keys := func(o any) []string {
		return slices.Sorted(maps.Keys(o.(map[string]any)["properties"].(map[string]any)))
	}
	for _, c := range []struct {
		name string
		form reflect.Type
		file string // with a key in place of %s
	}{
		{"", reflect.TypeFor[fileForm](), "%s: \n"},
		{"defaults", reflect.TypeFor[defaultsForm](), "defaults: {%s: }"},
		{"task", reflect.TypeFor[taskForm](), "tasks: [{%s: }]"},
		{"workflow", reflect.TypeFor[workflowForm](), "workflows: [{%s: }]"},
		{"step", reflect.TypeFor[stepForm](), "workflows: [{steps: [{%s: }]}]"},
		{"queue", nil, "queues: {q: {%s: }}"},
		{"calendar", reflect.TypeFor[calendarForm](), "calendars: {c: {%s: }}"},
		{"window", nil, "calendars: {c: {windows: [{%s: }]}}"},
		{"holidays", nil, "calendars: {c: {holidays: {%s: }}}"},
		{"retry", nil, "tasks: [{retry: {%s: }}]"},
		{"retryOn", nil, "tasks: [{retry: {on: {%s: }}}]"},
		{"resources", nil, "tasks: [{resources: {%s: }}]"},
		{"retention", nil, "queues: {q: {retention: {%s: }}}"},
		{"dependency", nil, "tasks: [{depends_on: [{%s: }]}]"},
	} {
		var of any = map[string]any(s)
		if c.name != "" {
			of = defs[c.name]
		}
		if of == nil {
			t.Errorf("$defs has no %s", c.name)
			continue
		}
		for _, key := range append(keys(of), "no_such_key") {
			_, problems := Parse("f.yaml", fmt.Appendf(nil, c.file, key), testNow)
			unknown := slices.ContainsFunc(problems, func(p Problem) bool { return strings.Contains(p.Message, "is not known") })
			if unknown != (key == "no_such_key") {
				t.Errorf("%s: %s: the parser says %v", c.name, key, problems)
			}
		}
		if c.form != nil {
			want := names(fieldsOf(c.form))
			slices.Sort(want)
			if !slices.Equal(keys(of), want) {
				t.Errorf("%s has the keys %v, and Parse knows %v", c.name, keys(of), want)
			}
		}
		delete(defs, c.name)
	}
	for name := range defs {
		t.Errorf("%s is in the schema, and not compared here", name)
	}
}

// Files that Parse takes are valid by the schema, and some that it refuses are not.
func TestSchemaValid(t *testing.T) {
	s := schema(t)
	files, _ := filepath.Glob("../../../testdata/files/*.yaml")
	if len(files) == 0 {
		t.Error("no files")
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parse(t, string(src))
		if bad := validate(s, src); bad != "" {
			t.Errorf("%s: %s", file, bad)
		}
	}
	for src, where := range map[string]string{
		"taskz: []":                                 "/taskz",
		"tasks: [{command: [a]}]":                   "/tasks/0",
		"tasks: [{name: a, command: 1}]":            "/tasks/0/command",
		"tasks: [{name: a, priority: Hihg}]":        "/tasks/0/priority",
		"tasks: [{name: a, timeout: 3}]":            "/tasks/0/timeout",
		"tasks: [{name: a, retry: {a: 3}}]":         "/tasks/0/retry/a",
		"workflows: [{name: a, steps: [{nam: a}]}]": "/workflows/0/steps/0/nam",
	} {
		if bad := validate(s, []byte(src)); !strings.HasPrefix(bad, where+": ") {
			t.Errorf("%s: got %q, want a problem at %s", src, bad, where)
		}
	}
}

// validate says what of a file is not valid by the schema, as far as the schema uses JSON Schema; "" when all is.
func validate(s object, src []byte) string {
	var v any
	if err := yaml.Unmarshal(src, &v); err != nil {
		return err.Error()
	}
	return check(s, s, v, "")
}

func check(root, s map[string]any, v any, path string) string {
	if ref, ok := s["$ref"].(string); ok {
		return check(root, root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), v, path)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list, ok := s[word].([]any); ok && !slices.ContainsFunc(list, func(x any) bool { return check(root, x.(map[string]any), v, path) == "" }) {
			return path + ": is none of " + word
		}
	}
	if words, ok := s["enum"].([]any); ok && !slices.Contains(words, v) {
		return fmt.Sprintf("%s: %v is none of %v", path, v, words)
	}
	kind := map[reflect.Kind]string{reflect.Map: "object", reflect.Slice: "array", reflect.String: "string", reflect.Int: "integer",
		reflect.Float64: "number", reflect.Bool: "boolean", reflect.Struct: "string"}[reflect.ValueOf(v).Kind()] // a struct is a time
	if want := s["type"]; want != nil {
		list, several := want.([]any)
		if !several {
			list = []any{want}
		}
		if !slices.Contains(list, any(kind)) && !(kind == "integer" && slices.Contains(list, any("number"))) {
			return fmt.Sprintf("%s: is %s, not %v", path, kind, want)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if x, ok := properties[name]; ok {
				if bad := check(root, x.(map[string]any), v[name], path+"/"+name); bad != "" {
					return bad
				}
				continue
			}
			if x, ok := s["patternProperties"].(map[string]any); ok && slices.ContainsFunc(slices.Collect(maps.Keys(x)), func(p string) bool {
				return regexp.MustCompile(p).MatchString(name)
			}) {
				continue
			}
			switch rest := s["additionalProperties"].(type) {
			case bool:
				if !rest {
					return path + "/" + name + ": is not known"
				}
			case map[string]any:
				if bad := check(root, rest, v[name], path+"/"+name); bad != "" {
					return bad
				}
			}
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				return path + ": lacks " + name.(string)
			}
		}
	case []any:
		items, _ := s["items"].(map[string]any)
		for i, x := range v {
			if bad := check(root, items, x, fmt.Sprintf("%s/%d", path, i)); bad != "" {
				return bad
			}
		}
	}
	return ""
}

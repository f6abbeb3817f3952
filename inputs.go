package dts

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Limits of inputs.
const (
	MaxInputs     = 32       // of one task
	MaxInputBytes = 32 << 10 // of one of them
)

// InputVariable is the environment variable in which a command gets an input.
func InputVariable(name string) string {
	return "DTS_OUTPUT_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

// placeholder is {{outputs.NAME}} or {{outputs.NAME | json}}.
var placeholder = regexp.MustCompile(`\{\{\s*outputs\.([^{}|]*?)\s*(\|\s*([^{}|]*?)\s*)?\}\}`)

// FillInputs replaces the placeholders in a text: {{outputs.NAME}} by plain of that input, {{outputs.NAME | json}} by the
// input as a JSON string with its quotes. nil: as it is.
func FillInputs(text string, inputs map[string]string, plain func(string) string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(hole string) string {
		m := placeholder.FindStringSubmatch(hole)
		value, is := inputs[m[1]]
		switch {
		case !is:
			return hole
		case m[3] == "json":
			b, _ := json.Marshal(value)
			return string(b)
		case plain != nil:
			return plain(value)
		}
		return value
	})
}

// checkInputs checks the inputs of a task, apart from whether there are such tasks before it. prefix is that of its fields.
func checkInputs(f *fieldErrors, prefix string, s *Spec, inputs []string) {
	if len(inputs) == 0 {
		return
	}
	field := prefix + "inputs"
	if len(inputs) > MaxInputs {
		f.add(field, "has %d entries; at most %d are allowed", len(inputs), MaxInputs)
		return
	}
	named, vars := map[string]bool{}, map[string]string{}
	for _, name := range inputs {
		checkText(f, field, name, MaxName)
		v := InputVariable(name)
		switch other, taken := vars[v]; {
		case name == "":
			f.add(field, "has an empty name")
		case named[name]:
			f.add(field, "%q is there twice", clip(name))
		case taken && s.TargetType == Command:
			f.add(field, "%q and %q are both %s in a command's environment; name one of them otherwise", clip(other), clip(name), v)
		}
		named[name], vars[v] = true, name
	}
	switch s.TargetType {
	case Command:
		t, err := s.Command()
		if err != nil {
			return // said already
		}
		for _, text := range append([]string{t.Shell, t.Stdin}, t.Argv...) {
			refuseHoles(f, prefix+"target_config", text, named)
		}
	case HTTPCallback:
		t, err := s.HTTP()
		if err != nil {
			return // said already
		}
		checkHoles(f, prefix+"target_config.url", t.URL, named)
		checkHoles(f, prefix+"target_config.body", t.Body, named)
		for _, v := range t.Headers {
			checkHoles(f, prefix+"target_config.headers", v, named)
		}
	default:
		f.add(field, "are for COMMAND and HTTP_CALLBACK; leave them out")
	}
}

// refuseHoles refuses the placeholders of a request in a text of a command, which would get them as they are.
func refuseHoles(f *fieldErrors, field, text string, named map[string]bool) {
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if named[m[1]] {
			f.add(field, "%s is for requests; a command finds that output in $%s", clip(m[0]), InputVariable(m[1]))
			return
		}
	}
}

// checkHoles checks the placeholders in a text of a request that has inputs.
func checkHoles(f *fieldErrors, field, text string, named map[string]bool) {
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		switch {
		case !named[m[1]]:
			f.add(field, "%s names an output that is not among the inputs; add %q to them", clip(m[0]), clip(m[1]))
		case m[2] != "" && m[3] != "json":
			f.add(field, "%s asks for the form %q; only json is known", clip(m[0]), clip(m[3]))
		}
	}
}

// Input is what a task that another one depends on has printed in its last attempt.
type Input struct {
	Name   string // of the task, or of the step
	TaskID string
	Output Output // Head may be shorter than Total
}

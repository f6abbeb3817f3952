package taskfile

import (
	"errors"
	"strings"

	"dts"
)

// at tells of the value at a path, or of the nearest one around it.
func (r *reader) at(path, format string, args ...any) { r.add(r.markOf(path).pos, format, args...) }

// markOf returns the mark of a path, or of the nearest path around it that was written.
func (r *reader) markOf(path string) mark {
	for path != "" {
		if m, ok := r.marks[path]; ok {
			return m
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return mark{pos: Pos{1, 1}}
}

// invalid tells what the rules of dts find wrong with what stands at a path.
func (r *reader) invalid(err error, path, what string) {
	if err == nil {
		return
	}
	e, ok := errors.AsType[*dts.Error](err)
	if !ok || len(e.Fields) == 0 {
		r.at(path, "%s: %s", what, err)
		return
	}
	for _, f := range e.Fields {
		at, name := join(path, f.Field), f.Field
		if inner, ok := strings.CutPrefix(f.Field, "target_config.steps"); ok {
			at, name = r.ofStep(path, "steps"+inner)
		} else if inner, ok := strings.CutPrefix(f.Field, "target_config"); ok {
			if _, own := r.marks[path+".target_config"]; !own {
				name = r.short(path, strings.TrimPrefix(inner, "."))
				at = join(path, name)
			}
		}
		if m, there := r.marks[at]; there && m.key != "" {
			name = name[:len(name)-len(lastPart(name))] + m.key
		}
		r.at(at, "%s: %s: %s", what, name, f.Message)
	}
}

// ofStep is where a field of a workflow's step stands, and what it is called there.
func (r *reader) ofStep(path, field string) (at, name string) {
	step, rest, _ := strings.Cut(field, "]")
	step = join(path, step+"]")
	name = strings.TrimPrefix(rest, ".")
	if inner, ok := strings.CutPrefix(name, "target_config"); ok {
		if _, own := r.marks[step+".target_config"]; !own {
			name = r.short(step, strings.TrimPrefix(inner, "."))
		}
	}
	return join(step, name), name
}

// short is what a field of a target_config is called in the file, where there is none.
func (r *reader) short(path, field string) string {
	if field != "argv" && field != "shell" && field != "" {
		return field
	}
	if _, is := r.marks[path+".command"]; is {
		return "command"
	}
	return "url"
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

package taskfile

import (
	"slices"
	"strconv"
	"strings"

	"dts/web/api"
)

// uniqueNames refuses two of a list that are called the same: the name is what tells them apart when the file is applied
// again. seen has the names of other lists that count, too.
func (r *reader) uniqueNames(list []*Task, path string, seen map[string]Pos) {
	for i, t := range list {
		r.uniqueName(t.Name, path+"["+strconv.Itoa(i)+"]", t.Pos, seen)
	}
}

func (r *reader) uniqueName(name, path string, pos Pos, seen map[string]Pos) {
	if first, twice := seen[name]; twice && name != "" {
		r.at(path+".name", "the name %s is there twice, first in line %d; each needs its own", quote(name), first.Line)
		return
	}
	seen[name] = pos
}

// resolve finds the tasks of a list that others depend on, and refuses circles. Among tasks, only those without a schedule
// can depend on each other: which run of another schedule would be meant is not clear.
func (r *reader) resolve(list []*Task, path, noun string, schedules bool) {
	index := map[string]int{}
	var names []string
	for i, t := range list {
		if _, there := index[t.Name]; !there && t.Name != "" {
			index[t.Name] = i
			names = append(names, t.Name)
		}
	}
	known := true
	for i, t := range list {
		at := path + "[" + strconv.Itoa(i) + "]"
		if schedules && t.Scheduled() && len(t.DependsOn) > 0 {
			r.at(at+".depends_on", "%s: depends_on is for tasks without a schedule; put both into a workflow", t.what())
			known = false
			continue
		}
		seen := map[string]bool{}
		for k := range t.DependsOn {
			d := &t.DependsOn[k]
			to, ok := index[d.Name]
			switch {
			case !ok:
				r.add(d.Pos, "%s depends on %s, and there is no such %s here%s", t.what(), quote(d.Name), noun, api.DidYouMean(d.Name, names))
				known = false
				continue
			case seen[d.Name]:
				r.add(d.Pos, "%s depends on %s twice", t.what(), quote(d.Name))
			case schedules && list[to].Scheduled():
				r.add(d.Pos, "%s depends on %s, which has a schedule; put both into a workflow", t.what(), quote(d.Name))
			}
			seen[d.Name] = true
			d.Index = to
		}
		for k, name := range t.Inputs {
			if !seen[name] && schedules { // of steps it may be further away: dts.Workflow looks
				r.at(at+".inputs["+strconv.Itoa(k)+"]", "%s reads the output of %s, but does not depend on it; add it to depends_on", t.what(), quote(name))
			}
		}
		if len(t.DependsOn) == 0 && (t.DependsMode != "" || t.OnDependencyFailure != "") {
			r.at(at, "%s: depends_mode and on_dependency_failure are for a %s that depends on others", t.what(), noun)
		}
	}
	if known {
		r.circles(list)
	}
}

// circles refuses tasks that wait for each other, one circle in each group that does.
func (r *reader) circles(list []*Task) {
	const open, done = 1, 2
	state := make([]int, len(list))
	type frame struct{ task, next int }
	for start := range list {
		if state[start] != 0 {
			continue
		}
		state[start] = open
		stack := []frame{{start, 0}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			t := list[top.task]
			if top.next == len(t.DependsOn) {
				state[top.task] = done
				stack = stack[:len(stack)-1]
				continue
			}
			d := t.DependsOn[top.next]
			top.next++
			switch state[d.Index] {
			case 0:
				state[d.Index] = open
				stack = append(stack, frame{d.Index, 0})
			case open:
				from := slices.IndexFunc(stack, func(f frame) bool { return f.task == d.Index })
				var names []string
				for _, f := range stack[from:] {
					names = append(names, list[f.task].Name)
				}
				r.add(d.Pos, "they wait for each other: %s", circle(append(names, d.Name)))
			}
		}
	}
}

// circle writes a circle of names, a long one without its middle.
func circle(names []string) string {
	if n := len(names); n > 10 {
		names = slices.Concat(names[:5], []string{"…"}, names[n-4:])
	}
	return strings.Join(names, " → ")
}

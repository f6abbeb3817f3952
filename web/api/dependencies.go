package api

import (
	"slices"
	"strconv"
	"strings"

	"dts"
)

// DependenciesRequest is the body of POST /tasks/{id}/dependencies.
type DependenciesRequest struct {
	DependsOn []dts.DependsOn `json:"depends_on" doc:"1 to 10000; those that are there already stay"`
}

func (h *Handler) getDependencies(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	return h.Store.Graph(c, c.p.TenantID, id, dts.MaxGraph)
}

func (h *Handler) addDependencies(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	var q DependenciesRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	var f fieldErrors
	if len(q.DependsOn) == 0 {
		f.add("depends_on", "is missing or empty; it must be an array of 1 to %d dependencies", dts.MaxDependencies)
	}
	list := f.dependsOn(q.DependsOn, nil)
	dts.NormalizeDependsOn(list, f.once())
	if err := f.err(); err != nil {
		return nil, err
	}
	return h.Scheduler.AddDependencies(c, c.p.TenantID, id, list)
}

func (h *Handler) removeDependency(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	parent := c.r.PathValue("parent")
	if !dts.IsID(parent) {
		return nil, dts.Errorf(dts.ErrNotFound, "%q is not an id; ids are 36 characters long, lower-case hexadecimal with hyphens", clip(strings.ToValidUTF8(parent, "\uFFFD")))
	}
	return h.Scheduler.RemoveDependency(c, c.p.TenantID, id, parent)
}

// once adds errors about fields that have none yet.
func (f *fieldErrors) once() func(field, format string, args ...any) {
	known := f.names()
	return func(field, format string, args ...any) {
		if !slices.Contains(known, field) {
			f.add(field, format, args...)
		}
	}
}

// dependsOn returns what a request depends on, with an id in place of each ref. refs are the ids of the tasks of a bulk
// request by their refs; nil outside one. What is wrong already gets an id that nothing else has.
func (f *fieldErrors) dependsOn(list []dts.DependsOn, refs map[string]string) []dts.DependsOn {
	if len(list) > dts.MaxDependencies {
		return list // whoever normalizes it says so
	}
	list = slices.Clone(list)
	for i := range list {
		d := &list[i]
		field := "depends_on[" + strconv.Itoa(i) + "]"
		switch {
		case d.Ref == "":
			f.id(field+".task_id", d.TaskID)
			continue
		case d.TaskID != "":
			f.add(field+".ref", "cannot be set together with task_id; keep one")
		case refs == nil:
			f.add(field+".ref", "is for POST /tasks/bulk; give the task_id")
		case refs[d.Ref] == "":
			f.add(field+".ref", "no task of the request has the ref %q", clip(strings.ToValidUTF8(d.Ref, "\uFFFD")))
		default:
			d.TaskID = refs[d.Ref]
			continue
		}
		d.TaskID = field
	}
	return list
}

// refs gives an id to each task of a bulk request that has a ref, and checks that they are different and not too many.
func (f *fieldErrors) refs(tasks []TaskRequest, newID func() string) map[string]string {
	ids := map[string]string{}
	edges := 0
	for i := range tasks {
		edges += len(tasks[i].DependsOn)
		ref := tasks[i].Ref
		if ref == "" {
			continue
		}
		field := indexed("tasks", i) + "ref"
		switch {
		case len(ref) > dts.MaxKey || badText(ref):
			f.add(field, "is longer than %d bytes, not valid UTF-8, or holds a NUL byte", dts.MaxKey)
		case ids[ref] != "":
			f.add(field, "%q is the ref of another task of the request, too", clip(ref))
		}
		ids[ref] = newID()
	}
	if edges > dts.MaxBulkDependencies {
		f.add("tasks", "have %d dependencies together; at most %d are allowed in a request", edges, dts.MaxBulkDependencies)
	}
	return ids
}

// refuseCircles refuses a bulk request in which tasks wait for each other. It takes away those that wait for none of the others
// until none is left; in what stays, each waits for another that stays, so that following them leads round.
func refuseCircles(tasks []*dts.Task, requests []TaskRequest) error {
	at := make(map[string]int, len(tasks))
	for i, t := range tasks {
		at[t.ID] = i
	}
	waits := make([]int, len(tasks))
	children := make([][]int, len(tasks))
	var free []int
	for i, t := range tasks {
		for _, d := range t.DependsOn {
			if p, here := at[d.TaskID]; here {
				waits[i]++
				children[p] = append(children[p], i)
			}
		}
		if waits[i] == 0 {
			free = append(free, i)
		}
	}
	gone := 0
	for ; len(free) > 0; gone++ {
		last := free[len(free)-1]
		free = free[:len(free)-1]
		for _, child := range children[last] {
			if waits[child]--; waits[child] == 0 {
				free = append(free, child)
			}
		}
	}
	if gone == len(tasks) {
		return nil
	}
	i := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
	var path []int
	for place := map[int]int{}; ; {
		if from, been := place[i]; been {
			path = append(path[from:], i)
			break
		}
		place[i] = len(path)
		path = append(path, i)
		next := slices.IndexFunc(tasks[i].DependsOn, func(d dts.DependsOn) bool { p, here := at[d.TaskID]; return here && waits[p] > 0 })
		i = at[tasks[i].DependsOn[next].TaskID]
	}
	const shown = 20
	var b strings.Builder
	for n, i := range path {
		if len(path) > 2*shown && n == shown {
			b.WriteString(" → (" + strconv.Itoa(len(path)-2*shown) + " more)")
		}
		if len(path) > 2*shown && n >= shown && n < len(path)-shown {
			continue
		}
		if n > 0 {
			b.WriteString(" → ")
		}
		b.WriteString(requests[i].Ref)
	}
	return dts.Errorf(dts.ErrConflict, "the tasks close a circle, in which each waits for the next: %s", b.String())
}

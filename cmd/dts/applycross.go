package main

import (
	"fmt"
	"strconv"

	"dts/cmd/dts/taskfile"
)

// crossed are what several files of one run declare: both would run, or one would undo the other. A queue and a calendar may
// be in more than one as long as they are the same.
func crossed(files []*taskfile.File) ([]taskfile.Problem, error) {
	type declaration struct {
		file   string
		line   int
		fields []taskfile.Field
	}
	firsts := map[string]declaration{}
	var list []taskfile.Problem
	look := func(file, what string, at taskfile.Pos, fields []taskfile.Field, right string) {
		first, twice := firsts[what]
		switch {
		case !twice:
			firsts[what] = declaration{file, at.Line, fields}
		case fields == nil || len(taskfile.Compare(first.fields, fields)) > 0:
			list = append(list, taskfile.Problem{File: file, Pos: at,
				Message: fmt.Sprintf("%s is in %s, too, in line %d; %s", what, first.file, first.line, right)})
		}
	}
	const (
		oneOf = "keep it in one of them, or give one another name"
		same  = "and is another one there; keep it in one of them"
	)
	for _, f := range files {
		for _, q := range f.Queues {
			made, err := q.Request.Queue(q.Name)
			if err != nil {
				return nil, err
			}
			look(f.Path, "the queue "+strconv.Quote(q.Name), q.Pos, taskfile.FieldsOfQueue(made), same)
		}
		for _, k := range f.Calendars {
			q := k.Request
			q.Name = k.Name
			made, err := q.Calendar()
			if err != nil {
				return nil, err
			}
			look(f.Path, "the calendar "+strconv.Quote(k.Name), k.Pos, taskfile.FieldsOfCalendar(made), same)
		}
		for _, t := range f.Tasks {
			look(f.Path, strconv.Quote(t.Name), t.Pos, nil, oneOf)
		}
		for _, w := range f.Workflows {
			look(f.Path, strconv.Quote(w.Name), w.Pos, nil, oneOf)
		}
	}
	return list, nil
}

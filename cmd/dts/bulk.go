package main

import (
	"github.com/urfave/cli/v2"

	"dts"
)

// bulkWords are what the verbs on many tasks are called: in a question, of tasks that are counted, and when it was done.
var bulkWords = map[dts.BulkVerb]struct{ question, past, done string }{
	dts.BulkCancel: {"Cancel", "cancelled", "Cancelled %s; what runs is killed.\n"},
	dts.BulkRetry:  {"Try again", "tried again", "Trying %s again.\n"},
	dts.BulkDelete: {"Remove", "removed", "Removed %s.\n"},
	dts.BulkPause:  {"Pause", "paused", "Paused %s.\n"},
	dts.BulkResume: {"Resume", "resumed", "Resumed %s.\n"},
}

// bulkFlags are those of a command that does something to the tasks that a filter selects.
func bulkFlags(v dts.BulkVerb) []cli.Flag {
	list := selectionFlags(v)
	if v == dts.BulkRetry || v == dts.BulkDelete {
		list = append([]cli.Flag{deadFlag()}, list...)
	}
	return append(list,
		&cli.BoolFlag{Name: "dry-run", Category: whichTasks, Usage: "only say how many there are"},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Category: whichTasks, Usage: "do not ask"})
}

// bulk counts the tasks that a filter selects, asks, and does it to them.
func (a *app) bulk(c *cli.Context, l *link, v dts.BulkVerb, f dts.TaskFilter) error {
	change := dts.BulkChange{Verb: v, Filter: f, DryRun: true}
	r, err := l.Bulk(c.Context, change)
	if err != nil {
		return err
	}
	words := bulkWords[v]
	asJSON := c.Bool("json")
	switch {
	case asJSON && (c.Bool("dry-run") || r.Matched == 0):
		r.DryRun = c.Bool("dry-run")
		return a.printJSON(r)
	case r.Matched == 0:
		a.printf("There is %s that can be %s.\n", a.selected(0, f), words.past)
		return nil
	case c.Bool("dry-run"):
		a.printf("%s would be %s.\n", a.selected(r.Matched, f), words.past)
		return nil
	}
	if !c.Bool("yes") && !c.Bool("force") {
		yes, err := a.confirm(c.Context, words.question+" "+a.selected(r.Matched, f)+"?")
		if err != nil || !yes {
			return err
		}
	}
	change.DryRun = false
	if r, err = l.Bulk(c.Context, change); err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(r)
	}
	a.printf(words.done, count(r.Done, "task"))
	if r.Done < r.Matched {
		a.notef("%s changed meanwhile: nothing was done there", count(r.Matched-r.Done, "other task"))
	}
	return nil
}

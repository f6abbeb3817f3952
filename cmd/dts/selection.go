package main

import (
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
)

// whichTasks is the title of the flags that select tasks.
const whichTasks = "Which tasks, in place of NAME|ID"

// selectionFlags select tasks in place of their names, for the commands that do something to many.
func selectionFlags(v dts.BulkVerb) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "status", Category: whichTasks, Usage: "those in the state `S`: pending, running, success, failed, cancelled or skipped; can be repeated"},
	}, commonSelection(whichTasks, untilFlag(v))...)
}

// untilFlag is the name of the flag that selects what is due before a time: that --until is taken in dts pause.
func untilFlag(v dts.BulkVerb) string {
	if v == dts.BulkPause {
		return "before"
	}
	return "until"
}

// commonSelection are the flags that select tasks by something else than their state.
func commonSelection(category, until string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "queue", Category: category, Usage: "those of the queue `NAME`"},
		&cli.StringSliceFlag{Name: "label", Category: category, Usage: "those with the label `K=V`; can be repeated"},
		&cli.StringFlag{Name: "name", Category: category, Usage: "those of this `NAME`"},
		&cli.StringFlag{Name: "batch", Category: category, Usage: "those of the bulk request `ID`"},
		&cli.StringFlag{Name: "since", Category: category, Usage: "those due at or after `TIME`, or a duration ago such as 2h"},
		&cli.StringFlag{Name: until, Category: category, Usage: "those due before `TIME`, or a duration ago"},
	}
}

// deadFlag selects the tasks that failed for good.
func deadFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dead", Category: whichTasks, Usage: "the dead letters: those that failed, and have no attempt left"}
}

// selection reads the flags that select tasks; until is the name of one of them. given reports whether there is one.
func (a *app) selection(c *cli.Context, until string) (f dts.TaskFilter, given bool, err error) {
	for _, flag := range []string{"status", "queue", "label", "name", "batch", "since", until, "dead"} {
		given = given || c.IsSet(flag)
	}
	f = dts.TaskFilter{Queue: c.String("queue"), Name: c.String("name"), BatchID: c.String("batch"), Limit: 500}
	if f.Labels, err = pairs(c, "label"); err != nil {
		return f, given, err
	}
	if f.Statuses, err = taskStatuses(c.StringSlice("status")); err != nil {
		return f, given, err
	}
	if f.BatchID != "" && !dts.IsID(f.BatchID) {
		return f, given, usagef("--batch: %q is not an id", clip(clean(f.BatchID), 40))
	}
	for _, x := range []struct {
		flag string
		to   *time.Time
	}{{"since", &f.From}, {until, &f.To}} {
		if c.IsSet(x.flag) {
			if *x.to, err = parsePast("--"+x.flag, c.String(x.flag), a.loc, a.now()); err != nil {
				return f, given, err
			}
		}
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.To.After(f.From) {
		return f, given, usagef("--%s: %s is not after --since, %s", until, clock(f.To, a.loc), clock(f.From, a.loc))
	}
	if c.Bool("dead") {
		if len(f.Statuses) > 0 {
			return f, given, usagef("--dead and --status are both given; keep one")
		}
		f.Statuses = []dts.Status{dts.Failed}
	}
	return f, given, nil
}

// taskStatuses reads the states of tasks, one or, with commas, several in a word.
func taskStatuses(given []string) ([]dts.Status, error) {
	var list []dts.Status
	for _, g := range given {
		for word := range strings.SplitSeq(g, ",") {
			s := dts.Status(strings.ToUpper(strings.TrimSpace(word)))
			if !slices.Contains(dts.Statuses, s) {
				return nil, usagef("--status: %q is not known; use pending, running, success, failed, cancelled or skipped", clip(clean(word), 20))
			}
			if !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list, nil
}

// selected writes how many tasks a filter selects, and which: 3 FAILED tasks of the queue reports.
func (a *app) selected(n int, f dts.TaskFilter) string {
	words := make([]string, len(f.Statuses))
	for i, s := range f.Statuses {
		words[i] = string(s)
	}
	what := strings.TrimSpace(strings.Join(words, " or ") + " task")
	if n == 0 {
		what = "no " + what
	} else {
		what = count(n, what)
	}
	return what + a.selectionWords(f)
}

// selectionWords says which tasks a filter selects besides their states, after "tasks".
func (a *app) selectionWords(f dts.TaskFilter) string {
	var b strings.Builder
	if f.Name != "" {
		b.WriteString(" named " + clean(f.Name))
	}
	if f.Queue != "" {
		b.WriteString(" of the queue " + clean(f.Queue))
	}
	if f.BatchID != "" {
		b.WriteString(" of the batch " + f.BatchID)
	}
	var labels []string
	for k, v := range f.Labels {
		labels = append(labels, clean(k+"="+v))
	}
	if slices.Sort(labels); len(labels) > 0 {
		b.WriteString(" with " + strings.Join(labels, ", "))
	}
	if !f.From.IsZero() {
		b.WriteString(" due since " + clock(f.From, a.loc))
	}
	if !f.To.IsZero() {
		b.WriteString(" due before " + clock(f.To, a.loc))
	}
	return b.String()
}

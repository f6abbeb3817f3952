package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/cmd/dts/taskfile"
)

func (a *app) exportCommand() *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write recurring tasks as a file that dts apply takes", Category: "Tasks", ArgsUsage: "[NAME|ID…]",
		Description: `Writes YAML to standard output: the recurring tasks and workflows that are named or selected, else all, with the settings
of the queues and the calendars that they use. Applying it changes nothing. With --file it is what a file keeps, with its
tasks that have a time and have not started.

Examples:
   dts export > tasks.yaml
   dts export --file nightly > nightly.yaml
   dts export --label team=sales report`,
		Flags: withConnection(
			&cli.StringFlag{Name: "file", Usage: "only what the file `NAME` keeps: what has the label dts.file=NAME"},
			&cli.StringSliceFlag{Name: "label", Usage: "only what has the label `K=V`; can be repeated"},
			&cli.StringFlag{Name: "queue", Usage: "only what is in the queue `NAME`"},
			&cli.BoolFlag{Name: "json", Usage: "write the same as JSON, which dts apply takes, too"}),
		Action: a.export,
	}
}

func (a *app) export(c *cli.Context) error {
	labels, err := pairs(c, "label")
	if err != nil {
		return err
	}
	if c.IsSet("file") {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[taskfile.Label] = c.String("file")
	}
	return a.withServer(c, func(l *link) error {
		content, left, err := l.content(c, labels)
		if err != nil {
			return err
		}
		src, err := taskfile.Encode(*content)
		if err == nil && c.Bool("json") {
			src, err = taskfile.JSON(src)
		}
		if err != nil {
			return fmt.Errorf("write the file: %w", err)
		}
		a.printf("%s", src)
		for _, note := range left {
			a.notef("%s", note)
		}
		if len(left) > 0 {
			return exitOnly(exitFailed)
		}
		return nil
	})
}

// content collects what is to be written, and says of what it leaves out why.
func (l *link) content(c *cli.Context, labels map[string]string) (content *taskfile.Content, left []string, err error) {
	all, err := l.notCancelled(c.Context)
	if err != nil {
		return nil, nil, err
	}
	content = &taskfile.Content{Name: c.String("file"), QueueRetries: map[string]*dts.Retry{}}
	chosen, err := l.chosen(c, all)
	if err != nil {
		return nil, nil, err
	}
	named := map[string][]*dts.RecurringTask{}
	for _, r := range chosen {
		if hasLabels(r.Labels, labels) && (!c.IsSet("queue") || r.Queue == c.String("queue")) {
			named[r.Name] = append(named[r.Name], r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		switch list := named[name]; {
		case name == "":
			left = append(left, fmt.Sprintf("%s without a name: left out; a file tells them apart by name", plural(len(list), "recurring task", "recurring tasks")))
		case len(list) > 1:
			left = append(left, fmt.Sprintf("%d recurring tasks have the name %q: left out; a file tells them apart by name", len(list), name))
		default:
			content.Recurring = append(content.Recurring, list[0])
		}
	}
	if c.IsSet("file") && !c.Args().Present() {
		if err := l.onceOf(c, labels, content); err != nil {
			return nil, nil, err
		}
	}
	return content, left, l.used(c, content)
}

// chosen returns the recurring tasks that the arguments name, or all.
func (l *link) chosen(c *cli.Context, all []*dts.RecurringTask) ([]*dts.RecurringTask, error) {
	if !c.Args().Present() {
		return all, nil
	}
	var list []*dts.RecurringTask
	for _, ref := range c.Args().Slice() {
		found := false
		for _, r := range all {
			if r.ID == ref || r.Name == ref {
				list, found = append(list, r), true
			}
		}
		if !found {
			return nil, failf("there is no recurring task %q; dts ls --recurring shows what there is", ref)
		}
	}
	return slices.Compact(list), nil
}

// onceOf adds the tasks with a time that a file keeps and that have not started.
func (l *link) onceOf(c *cli.Context, labels map[string]string, content *taskfile.Content) error {
	seen := map[string]bool{}
	for _, r := range content.Recurring {
		seen[r.Name] = true
	}
	f := dts.TaskFilter{Labels: labels, Queue: c.String("queue"), Statuses: []dts.Status{dts.Pending}, Limit: 1000}
	for t, err := range l.AllTasks(c.Context, f) {
		if err != nil {
			return err
		}
		if t.RecurringTaskID == "" && t.WorkflowID == "" && t.Attempts == 0 && t.Name != "" && !seen[t.Name] {
			seen[t.Name] = true
			content.Once = append(content.Once, t)
		}
	}
	return nil
}

// used adds the queues with settings and the calendars that the tasks use.
func (l *link) used(c *cli.Context, content *taskfile.Content) error {
	queues, calendars := map[string]bool{}, map[string]bool{}
	for _, r := range content.Recurring {
		queues[r.Queue] = true
		for _, name := range r.Calendars() {
			calendars[name] = true
		}
		if w, err := r.Workflow(); err == nil {
			for _, s := range w.Steps {
				queues[s.Queue] = true
			}
		}
	}
	for _, t := range content.Once {
		queues[t.Queue] = true
	}
	there, err := l.Queues(c.Context)
	if err != nil {
		return err
	}
	for _, q := range there {
		if q.CreatedAt.IsZero() || !queues[q.Name] {
			continue
		}
		content.QueueRetries[q.Name] = q.Retry
		content.Queues = append(content.Queues, q)
	}
	for _, name := range slices.Sorted(maps.Keys(calendars)) {
		k, err := l.Calendar(c.Context, name)
		if dts.CodeOf(err) == dts.ErrNotFound {
			continue
		}
		if err != nil {
			return err
		}
		content.Calendars = append(content.Calendars, k)
	}
	return nil
}

// importYAML writes the jobs of crontabs as a file, and adds nothing.
func (a *app) importYAML(c *cli.Context, p *importPlan) error {
	from := make([]string, 0, len(p.files))
	for _, f := range p.files {
		from = append(from, clean(f.path))
	}
	name := "" // of several files it is that of the file that they are written to
	if len(p.files) == 1 {
		if name = taskfile.NameOf(p.files[0].path); name == "" {
			name = "crontab"
		}
	}
	src, err := taskfile.EncodeRequests(name, p.requests())
	if err == nil && c.Bool("json") {
		src, err = taskfile.JSON(src)
	}
	if err != nil {
		return fmt.Errorf("write the file: %w", err)
	}
	if !c.Bool("json") {
		a.printf("# From %s\n", strings.Join(from, ", "))
	}
	a.printf("%s", src)
	a.importNotes(p)
	if p.refused > 0 {
		return exitOnly(exitUsage)
	}
	return nil
}

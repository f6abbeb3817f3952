package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
)

// maxScan is how many tasks are looked through for those that a list without --all shows.
const maxScan = 2000

func (a *app) lsCommand() *cli.Command {
	return &cli.Command{
		Name: "ls", Usage: "list recurring tasks, then tasks", Category: "Tasks",
		Description: `Without --all it leaves out what is planned for recurring tasks, removed recurring tasks, and the steps of workflows that
wait for others or have ended: --workflow lists those, too.`,
		Flags: withConnection(
			&cli.BoolFlag{Name: "recurring", Aliases: []string{"r"}, Usage: "recurring tasks only"},
			&cli.BoolFlag{Name: "tasks", Aliases: []string{"t"}, Usage: "tasks only"},
			&cli.StringSliceFlag{Name: "status", Usage: "those in the state `S`: pending, running, success, failed, cancelled, skipped; active, paused, completed; can be repeated"},
			&cli.StringFlag{Name: "queue", Usage: "those of the queue `NAME`"},
			&cli.StringSliceFlag{Name: "label", Usage: "those with the label `K=V`; can be repeated"},
			&cli.StringFlag{Name: "name", Usage: "those of this `NAME`"},
			&cli.StringFlag{Name: "batch", Usage: "the tasks of the bulk request `ID`"},
			&cli.StringFlag{Name: "workflow", Usage: "the steps of a workflow's run, given by its `NAME|ID`; of a recurring one the newest run"},
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "all there are"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 20, DefaultText: "20", Usage: "at most `N` tasks"},
			jsonFlag(),
		),
		Action: a.ls,
	}
}

// listing is what `dts ls` was asked for.
type listing struct {
	tasks, recurring bool
	statuses         []dts.Status
	rstatuses        []dts.RecurringStatus
	queue, name      string
	batch            string
	workflow         string
	labels           map[string]string
	all              bool
	limit            int
}

func (a *app) ls(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	q := listing{queue: c.String("queue"), name: c.String("name"), batch: c.String("batch"), workflow: c.String("workflow"), all: c.Bool("all"), limit: c.Int("limit")}
	var err error
	if q.labels, err = pairs(c, "label"); err != nil {
		return err
	}
	if q.limit < 1 || q.limit > 100_000 {
		return usagef("--limit: is %d; use 1 to 100000", q.limit)
	}
	if err := q.readStatuses(c.StringSlice("status")); err != nil {
		return err
	}
	if q.batch != "" && !dts.IsID(q.batch) {
		return usagef("--batch: %q is not an id", clip(clean(q.batch), 40))
	}
	q.tasks, q.recurring = c.Bool("tasks"), c.Bool("recurring")
	if q.workflow != "" && q.recurring {
		return usagef("--workflow: lists steps, and those are tasks; leave --recurring out")
	}
	if !q.tasks && !q.recurring {
		q.tasks = len(q.statuses) > 0 || len(q.rstatuses) == 0
		q.recurring = q.batch == "" && q.workflow == "" && (len(q.rstatuses) > 0 || len(q.statuses) == 0)
	}
	return a.withServer(c, func(l *link) error { return a.list(c.Context, l, q, c.Bool("json")) })
}

func (q *listing) readStatuses(given []string) error {
	for _, g := range given {
		for word := range strings.SplitSeq(g, ",") {
			s := strings.ToUpper(strings.TrimSpace(word))
			task := slices.Contains(dts.Statuses, dts.Status(s))
			recurring := slices.Contains([]dts.RecurringStatus{dts.Active, dts.Paused, dts.Completed, dts.Ended}, dts.RecurringStatus(s))
			if !task && !recurring {
				return usagef("--status: %q is not known; use pending, running, success, failed, cancelled or skipped, or for recurring tasks active, paused, completed or cancelled", clip(clean(word), 20))
			}
			if task {
				q.statuses = append(q.statuses, dts.Status(s))
			}
			if recurring {
				q.rstatuses = append(q.rstatuses, dts.RecurringStatus(s))
			}
		}
	}
	return nil
}

func (a *app) list(ctx context.Context, l *link, q listing, asJSON bool) error {
	var recurring []*dts.RecurringTask
	var tasks []*dts.Task
	var more bool
	var err error
	if q.workflow != "" {
		run, err := l.runMeant(ctx, q.workflow)
		if err != nil {
			return err
		}
		q.workflow = run.ID
	}
	if q.recurring {
		if recurring, err = q.findRecurring(ctx, l); err != nil {
			return err
		}
	}
	if q.tasks {
		if tasks, more, err = q.findTasks(ctx, l); err != nil {
			return err
		}
	}
	if asJSON {
		out := map[string]any{}
		if q.recurring {
			out["recurring_tasks"] = append([]*dts.RecurringTask{}, recurring...)
		}
		if q.tasks {
			out["tasks"] = append([]*dts.Task{}, tasks...)
		}
		return a.printJSON(out)
	}
	switch {
	case len(recurring)+len(tasks) == 0 && (q.queue != "" || q.name != "" || q.batch != "" || q.workflow != "" || len(q.labels)+len(q.statuses)+len(q.rstatuses) > 0):
		a.printf("Nothing matches.\n")
	case len(recurring)+len(tasks) == 0:
		a.printf("There is nothing yet. Add something with: dts add --cron \"*/5 * * * *\" -- ./backup.sh\n")
	}
	if len(recurring) > 0 {
		a.recurringTable(recurring)
	}
	if len(tasks) > 0 {
		if len(recurring) > 0 {
			a.printf("\n")
		}
		a.taskTable(tasks)
		if more {
			a.printf("%s\n", a.dim("There are more: --limit or --all shows them."))
		}
	}
	return nil
}

func (q *listing) findRecurring(ctx context.Context, l *link) ([]*dts.RecurringTask, error) {
	f := dts.RecurringFilter{Statuses: q.rstatuses, Name: q.name, Limit: 500}
	if len(f.Statuses) == 0 && !q.all {
		f.Statuses = []dts.RecurringStatus{dts.Active, dts.Paused, dts.Completed}
	}
	var list []*dts.RecurringTask
	for r, err := range l.AllRecurringTasks(ctx, f) {
		if err != nil {
			return nil, err
		}
		if q.queue != "" && r.Queue != q.queue || !hasLabels(r.Labels, q.labels) {
			continue
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(x, y *dts.RecurringTask) int {
		switch {
		case x.NextRunAt.IsZero() != y.NextRunAt.IsZero():
			if y.NextRunAt.IsZero() {
				return -1
			}
			return 1
		case !x.NextRunAt.Equal(y.NextRunAt):
			return x.NextRunAt.Compare(y.NextRunAt)
		}
		return strings.Compare(x.Name, y.Name)
	})
	return list, nil
}

func hasLabels(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// findTasks returns the tasks to show: what runs, then what waits, soonest first, then what is done, newest
// first. more tells that there are others.
func (q *listing) findTasks(ctx context.Context, l *link) (list []*dts.Task, more bool, err error) {
	f := dts.TaskFilter{Statuses: q.statuses, Queue: q.queue, Name: q.name, BatchID: q.batch, WorkflowID: q.workflow, Labels: q.labels, Limit: 500}
	if q.workflow != "" {
		list, _, err = scan(ctx, l, f, 0, 0, nil)
		slices.Reverse(list) // in the order of the workflow
		return list, false, err
	}
	if q.all || len(q.statuses) > 0 {
		limit := q.limit
		if q.all {
			limit = 0
		}
		list, more, err = scan(ctx, l, f, limit, 0, nil)
		return list, more, err
	}
	// The row of a workflow's run tells of its steps, too, but for those that run or could.
	all := q.queue != "" || q.name != "" || q.batch != "" || len(q.labels) > 0
	groups := make([][]*dts.Task, 3)
	for i, statuses := range [][]dts.Status{{dts.Running}, {dts.Pending}, {dts.Success, dts.Failed, dts.Cancelled, dts.Skipped}} {
		f.Statuses = statuses
		f.Limit = min(4*(q.limit+1), 500)
		keep := func(t *dts.Task) bool { return all || t.WorkflowID == "" }
		switch i {
		case 0:
			keep = nil
		case 1:
			f.Limit = 500
			keep = func(t *dts.Task) bool { return !planned(t) && (all || t.WorkflowID == "" || t.Unresolved == 0) }
		}
		var cut bool
		if groups[i], cut, err = scan(ctx, l, f, q.limit, maxScan, keep); err != nil {
			return nil, false, err
		}
		more = more || cut
	}
	slices.SortStableFunc(groups[1], func(x, y *dts.Task) int { return x.RunAt.Compare(y.RunAt) })
	// What waits leaves room for what is done, as long as there is any.
	rest := max(q.limit-len(groups[0]), 0)
	waiting := min(len(groups[1]), max(rest-len(groups[2]), rest/2))
	done := min(len(groups[2]), rest-waiting)
	more = more || waiting < len(groups[1]) || done < len(groups[2])
	return slices.Concat(groups[0], groups[1][:waiting], groups[2][:done]), more, nil
}

// planned reports whether a task is an occurrence that waits for its time: the recurring task's row tells
// of it.
func planned(t *dts.Task) bool {
	return t.RecurringTaskID != "" && t.Origin == dts.OriginSchedule && t.Status == dts.Pending && t.Attempts == 0 && t.WaitsFor == ""
}

// scan collects tasks that keep wants, at most limit of them, looking at no more than look; 0 is no limit.
func scan(ctx context.Context, l *link, f dts.TaskFilter, limit, look int, keep func(*dts.Task) bool) (list []*dts.Task, more bool, err error) {
	seen := 0
	for t, err := range l.AllTasks(ctx, f) {
		if err != nil {
			return nil, false, err
		}
		if seen++; look > 0 && seen > look {
			return list, true, nil
		}
		if keep != nil && !keep(t) {
			continue
		}
		if limit > 0 && len(list) == limit {
			return list, true, nil
		}
		list = append(list, t)
	}
	return list, false, nil
}

func (a *app) recurringTable(list []*dts.RecurringTask) {
	names := map[string]int{}
	for _, r := range list {
		names[r.Name]++
	}
	now := a.now()
	var rows [][]string
	var byID []string // those that their name does not find
	for _, r := range list {
		name := displayName(&r.Spec)
		if r.Name == "" || names[r.Name] > 1 {
			byID = append(byID, fmt.Sprintf("  %s  %s, %s", r.ID, name, strings.ToLower(scheduleWords(&r.Schedule)[:1])+scheduleWords(&r.Schedule)[1:]))
		}
		next := relative(r.NextRunAt, now)
		switch r.Status {
		case dts.Paused:
			next = "paused"
			if !r.PausedUntil.IsZero() {
				next = "paused, ends " + relative(r.PausedUntil, now)
			}
		case dts.Completed, dts.Ended:
			next = strings.ToLower(string(r.Status))
		case dts.Active:
			switch {
			case strings.HasPrefix(r.Cron, "@reboot") && r.NextRunAt.IsZero():
				next = "at boot"
			case !r.NextRunAt.IsZero() && now.Sub(r.NextRunAt) > time.Second:
				next = "waits for " + distance(now.Sub(r.NextRunAt))
			}
		}
		last := "–"
		if !r.LastRunAt.IsZero() {
			last = a.status(string(r.LastStatus)) + " " + relative(r.LastRunAt, now)
		}
		schedule := shortSchedule(&r.Schedule)
		if r.Unreadable != "" {
			schedule = "cannot be read"
		}
		rows = append(rows, []string{name, schedule, next, last, fmt.Sprint(r.RunsCount)})
	}
	a.table([]string{"RECURRING", "SCHEDULE", "NEXT", "LAST RUN", "RUNS"}, rows, 0)
	if len(byID) > 0 {
		a.printf("%s\n%s\n", a.dim("These need their ids, because they share a name or have none:"), strings.Join(byID, "\n"))
	}
}

func (a *app) taskTable(list []*dts.Task) {
	now := a.now()
	var rows [][]string
	for _, t := range list {
		rows = append(rows, []string{t.ID, displayName(&t.Spec), a.status(string(t.Status)), a.taskWhen(t, now), taskLate(t)})
	}
	a.table([]string{"TASK", "NAME", "STATUS", "WHEN", "LATE"}, rows, 1)
}

// taskWhen is the instant that matters about a task in its state.
func (a *app) taskWhen(t *dts.Task, now time.Time) string {
	switch {
	case t.Status == dts.Pending && t.WaitsFor == dts.ReasonPaused:
		return "paused"
	case runWords(t) != "":
		return runWords(t)
	case t.Status == dts.Pending && t.Unresolved > 0:
		return "after " + count(t.Unresolved, "other task")
	case t.Status == dts.Pending && t.WaitsFor == dts.ReasonOverlap:
		return "after the run before"
	case t.Status == dts.Pending && t.WaitsFor == dts.ReasonBlackout:
		return "after a blackout, " + relative(t.RunAt, now)
	case t.Status == dts.Pending:
		return relative(t.RunAt, now)
	case t.Status == dts.Running && !t.StartedAt.IsZero():
		return "for " + distance(max(now.Sub(startOf(t)), 0))
	case !t.CompletedAt.IsZero():
		return relative(t.CompletedAt, now)
	}
	return relative(t.RunAt, now)
}

func taskLate(t *dts.Task) string {
	if t.LatenessUS == nil {
		return "–"
	}
	return span(time.Duration(max(*t.LatenessUS, 0)) * time.Microsecond)
}

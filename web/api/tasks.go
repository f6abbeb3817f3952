package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dts"
)

const (
	maxPage     = 1000
	normalPage  = 100
	maxCursor   = 1024
	maxStatuses = 16
)

func (h *Handler) createTask(c *call) (any, error) {
	var q TaskRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	if err := c.idempotencyKey(&q.IdempotencyKey); err != nil {
		return nil, err
	}
	t, err := q.task(c.p.TenantID, c.p.Name, h.Now(), nil)
	if err != nil {
		return nil, err
	}
	made, err := h.Scheduler.CreateTasks(c, []*dts.Task{t})
	if err != nil {
		return nil, err
	}
	if made[0].Existed {
		c.status = 200
	}
	return made[0].Item, nil
}

// idempotencyKey takes the header Idempotency-Key as the key, unless the body has one.
func (c *call) idempotencyKey(key *string) error {
	header := c.r.Header.Get("Idempotency-Key")
	switch {
	case header == "":
	case badText(header):
		return dts.Invalid("Idempotency-Key", "is not valid UTF-8")
	case *key != "" && *key != header:
		return dts.Invalid("idempotency_key", "differs from the header Idempotency-Key; give one of them")
	default:
		*key = header
	}
	return nil
}

func (h *Handler) listTasks(c *call) (any, error) {
	var f fieldErrors
	filter := dts.TaskFilter{
		TenantID: c.p.TenantID, Queue: c.query.Get("queue"), Name: c.query.Get("name"), CreatedBy: c.query.Get("created_by"),
		NamePrefix: c.query.Get("name_prefix"), Error: c.query.Get("error"),
		DedupeKey: c.query.Get("dedupe_key"), ConcurrencyKey: c.query.Get("concurrency_key"),
		RecurringTaskID: f.id("recurring_task_id", c.query.Get("recurring_task_id")),
		BatchID:         f.id("batch_id", c.query.Get("batch_id")),
		WorkflowID:      f.id("workflow_id", c.query.Get("workflow_id")),
		Statuses:        enumList(&f, "status", c.query["status"], dts.Statuses),
		Labels:          f.labels(c.query["label"]),
		From:            f.time("from", TimeText{Text: c.query.Get("from")}, nil),
		To:              f.time("to", TimeText{Text: c.query.Get("to")}, nil),
		Cursor:          f.cursor(c.query.Get("cursor")),
		Limit:           f.number("limit", c.query.Get("limit"), normalPage, maxPage),
	}
	switch reasons := enumList(&f, "waits_for", c.query["waits_for"], waits); {
	case len(reasons) > 1:
		f.add("waits_for", "is given more than once; ask for one")
	case len(reasons) == 1:
		filter.WaitsFor = reasons[0]
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return page(h.Store.Tasks(c, filter))
}

func (h *Handler) getTask(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	t, err := h.Store.Task(c, c.p.TenantID, id)
	if err != nil {
		return nil, err
	}
	t.Breakdown = t.Timing(h.Now())
	return t, nil
}

func (h *Handler) modifyTask(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	var q TaskPatch
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	if err := refuseNulls(c.body, "expires_at"); err != nil {
		return nil, err
	}
	p, err := q.patch(h.Now())
	if err != nil {
		return nil, err
	}
	return h.Scheduler.ModifyTask(c, c.p.TenantID, id, p)
}

// doTask serves a verb.
func (h *Handler) doTask(v dts.Verb) func(*call) (any, error) {
	return func(c *call) (any, error) {
		id, err := c.id()
		if err != nil {
			return nil, err
		}
		return h.Scheduler.DoTask(c, c.p.TenantID, id, v, c.p.Name)
	}
}

func (h *Handler) listAttempts(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	if _, err := h.Store.Task(c, c.p.TenantID, id); err != nil {
		return nil, err
	}
	list, err := h.Store.Attempts(c, c.p.TenantID, id)
	return Items[*dts.Attempt]{nonNil(list)}, err
}

// page makes the answer of a list.
func page[T any](p dts.Page[T], err error) (any, error) {
	return Page[T]{nonNil(p.Items), p.Next}, err
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func badText(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) }

func (f *fieldErrors) id(field, s string) string {
	if s != "" && !dts.IsID(s) {
		f.add(field, "is not an id; ids are 36 characters long, lower-case hexadecimal with hyphens")
	}
	return s
}

func (f *fieldErrors) cursor(s string) string {
	if len(s) > maxCursor {
		f.add("cursor", "is not a cursor; use next_cursor of the page before")
		return ""
	}
	return s
}

func (f *fieldErrors) number(field, s string, normal, high int) int {
	if s == "" {
		return normal
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > high {
		f.add(field, "must be a whole number from 1 to %d", high)
	}
	return n
}

func (f *fieldErrors) labels(list []string) map[string]string {
	if len(list) == 0 {
		return nil
	}
	if len(list) > dts.MaxLabels {
		f.add("label", "is given %d times; at most %d are allowed", len(list), dts.MaxLabels)
		return nil
	}
	labels := map[string]string{}
	for _, l := range list {
		name, value, ok := strings.Cut(l, "=")
		if !ok || name == "" {
			f.add("label", "must be name=value")
			continue
		}
		labels[name] = value
	}
	return labels
}

// enumList reads values that are repeated, or separated by commas, and known.
func enumList[T ~string](f *fieldErrors, field string, given []string, known []T) []T {
	var list []T
	for _, g := range given {
		for s := range strings.SplitSeq(g, ",") {
			v := T(strings.ToUpper(strings.TrimSpace(s)))
			switch {
			case v == "" || slices.Contains(list, v):
			case !slices.Contains(known, v) || len(list) == maxStatuses:
				f.add(field, "%q is not known; use %s", clip(s), oneOf(known))
				return nil
			default:
				list = append(list, v)
			}
		}
	}
	return list
}

func oneOf[T ~string](known []T) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// newest returns the attempt with the highest number, or nil.
func newest(list []*dts.Attempt) *dts.Attempt {
	if len(list) == 0 {
		return nil
	}
	return slices.MaxFunc(list, func(a, b *dts.Attempt) int { return cmp.Compare(a.Number, b.Number) })
}

// inFuture returns a time that must not have passed.
func (f *fieldErrors) inFuture(field string, at, now time.Time) time.Time {
	switch {
	case at.IsZero():
	case !at.After(now):
		f.add(field, "%s has passed (it is %s now)", at.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !dts.InRange(at, now):
		f.add(field, "%s is more than 100 years ahead", at.Format(time.RFC3339))
	}
	return at
}

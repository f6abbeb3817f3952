package peers

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dts"
)

const tenant = dts.DefaultTenant

func TestTaskVerbsReachWhoIsResponsible(t *testing.T) {
	w, n := servers(t, "n1", "n2", "n3")
	name := ""
	for _, tt := range []struct {
		name           string
		holder, runner string
		status         dts.Status
		by             int // which server does it, from 0
	}{
		{"pending here", "n1", "", dts.Pending, 0},
		{"pending there", "n2", "", dts.Pending, 1},
		{"claimed there", "n2", "n2", dts.Pending, 1},
		{"running here, of a shard there", "n2", "n1", dts.Running, 0},
		{"running there, of a shard here", "n1", "n3", dts.Running, 2},
		{"finished there", "n3", "n1", dts.Failed, 2},
		{"lost: its runner is dead", "n2", "gone", dts.Running, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := w.task(tt.holder, tt.status, tt.runner)
			for _, do := range []struct {
				what string
				f    func() (*dts.Task, error)
				ok   func(*dts.Task) bool
			}{
				{"modify", func() (*dts.Task, error) {
					return n[0].router.ModifyTask(ctx, tenant, k.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name, Labels: map[string]string{}}})
				}, func(t *dts.Task) bool { return t.Name == "" && t.Labels != nil }},
				{"run-now", func() (*dts.Task, error) { return n[0].router.DoTask(ctx, tenant, k.ID, dts.RunNow, "alice") },
					func(t *dts.Task) bool { return t.LastError == "run-now by alice" }},
				{"cancel", func() (*dts.Task, error) { return n[0].router.DoTask(ctx, tenant, k.ID, dts.Cancel, "alice") },
					func(t *dts.Task) bool { return t.Status == dts.Cancelled }},
			} {
				got, err := do.f()
				if err != nil || got.ID != k.ID || !do.ok(got) {
					t.Fatalf("%s: %+v, %v", do.what, got, err)
				}
				for i, s := range n {
					if did := s.asked(); (len(did) == 1 && did[0] == do.what) != (i == tt.by) {
						t.Errorf("%s: %s was asked for %v", do.what, s.id, did)
					}
				}
			}
			// Cancelled, it belongs to the holder of its shard.
			got, err := n[0].router.DoTask(ctx, tenant, k.ID, dts.Delete, "alice")
			if err != nil || got.Status != dts.Cancelled {
				t.Errorf("delete: %+v, %v", got, err)
			}
			if _, err := n[0].router.DoTask(ctx, tenant, k.ID, dts.Delete, "alice"); dts.CodeOf(err) != dts.ErrNotFound {
				t.Errorf("delete again: %v", err)
			}
			for _, s := range n {
				s.asked()
			}
		})
	}
	if _, err := n[0].router.DoTask(ctx, "other", w.task("n2", dts.Pending, "").ID, dts.Cancel, "mallory"); dts.CodeOf(err) != dts.ErrNotFound {
		t.Errorf("another tenant's task: %v", err)
	}
}

func TestRecurringVerbsReachTheHolder(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	for i, id := range []string{"n1", "n2"} {
		r, k := w.everyHour(id), n[0].router
		none := int64(0)
		w.recurring[r.ID].MaxRuns = 7
		got, err := k.ModifyRecurring(ctx, tenant, r.ID, dts.RecurringPatch{MaxRuns: &none})
		if err != nil || got.MaxRuns != 0 {
			t.Errorf("modify: %+v, %v", got, err)
		}
		got, err = k.PauseRecurring(ctx, tenant, r.ID, now, "moving", "alice")
		if err != nil || got.Status != dts.Paused || !got.PausedUntil.Equal(now) || got.PauseNote != "moving by alice" {
			t.Errorf("pause: %+v, %v", got, err)
		}
		if got, err = k.ResumeRecurring(ctx, tenant, r.ID, false, "alice"); err != nil || got.Status != dts.Active || got.PauseNote != "moving by alice" {
			t.Errorf("resume: %+v, %v", got, err)
		}
		if got, err = k.ResumeRecurring(ctx, tenant, r.ID, true, "alice"); err != nil || got.PauseNote != "caught up by alice" {
			t.Errorf("resume and catch up: %+v, %v", got, err)
		}
		for _, dry := range []bool{false, true} {
			want := dts.BackfillAnswer{Count: 3, First: now, Last: now.Add(time.Hour)}
			if !dry {
				want.Created = 3
			}
			b, err := k.BackfillRecurring(ctx, tenant, r.ID, dts.BackfillRequest{From: now, To: now.Add(time.Hour), DryRun: dry}, "alice")
			if err != nil || *b != want {
				t.Errorf("backfill, dry %v: %+v, %v", dry, b, err)
			}
		}
		task, err := k.TriggerRecurring(ctx, tenant, r.ID, "alice")
		if err != nil || task.RecurringTaskID != r.ID || task.CreatedBy != "alice" {
			t.Errorf("trigger: %+v, %v", task, err)
		}
		if got, err = k.CancelRecurring(ctx, tenant, r.ID, "alice"); err != nil || got.Status != dts.Ended {
			t.Errorf("cancel: %+v, %v", got, err)
		}
		if did := n[i].asked(); strings.Join(did, " ") != "modify pause resume resume backfill backfill trigger cancel" {
			t.Errorf("%s was asked for %v", id, did)
		}
	}
}

// Calendars, blackouts and questions are nobody's in particular: the server that is asked does them.
func TestWhatAnyServerDoes(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	for i := range w.holders {
		w.holders[i] = "n2"
	}
	k := n[0].router
	c, err := k.CreateCalendar(ctx, &dts.Calendar{Name: "a"})
	ok := err == nil && c.Name == "a"
	c, err = k.ReplaceCalendar(ctx, &dts.Calendar{Name: "b"})
	ok = ok && err == nil && c.Name == "b" && k.DeleteCalendar(ctx, tenant, "c") == nil
	b, err := k.CreateBlackout(ctx, &dts.Blackout{ID: "d"})
	ok = ok && err == nil && b.ID == "d"
	b, err = k.ReplaceBlackout(ctx, &dts.Blackout{ID: "e"})
	ok = ok && err == nil && b.ID == "e" && k.DeleteBlackout(ctx, tenant, "f") == nil
	q, err := k.PutQueue(ctx, &dts.Queue{Name: "q"})
	ok = ok && err == nil && q.Name == "q" && k.DeleteQueue(ctx, tenant, "r") == nil
	keep, err := k.Retention(ctx, tenant)
	ok = ok && err == nil && keep.Rows == 5
	keep, err = k.PutRetention(ctx, tenant, dts.Retention{Rows: 7})
	ok = ok && err == nil && keep.Rows == 7
	p, err := k.Preview(ctx, tenant, dts.PreviewRequest{Schedule: dts.Schedule{TimeZone: "UTC"}})
	ok = ok && err == nil && p.TimeZone == "UTC"
	list, err := k.Conflicts(ctx, tenant, now, now.Add(time.Hour))
	ok = ok && err == nil && list[0].To.Sub(list[0].From) == time.Hour
	why, err := k.Why(ctx, tenant, "g", now)
	if !ok || err != nil || why.Answer != "g at 2026-03-01T08:00:00Z" {
		t.Errorf("%v %v %v %v %v: %v", c, b, p, list, why, err)
	}
	want := "create calendar, replace calendar, delete calendar c, create blackout, replace blackout, delete blackout f, put queue, delete queue r, retention, put retention, preview, conflicts, why"
	if did := strings.Join(n[0].asked(), ", "); did != want || len(n[1].asked()) != 0 {
		t.Errorf("it was asked for %s", did)
	}
}

func TestVerbsFollowAShardThatMoves(t *testing.T) {
	w, n := servers(t, "n1", "n2", "n3")
	k := w.task("n3", dts.Pending, "")
	old := w.placement("n1")
	old.Holders[k.Shard] = "n2"
	n[0].believes = &old
	if got, err := n[0].router.DoTask(ctx, tenant, k.ID, dts.RunNow, "alice"); err != nil || got.LastError != "run-now by alice" {
		t.Fatalf("%+v, %v", got, err)
	}
	if a, b := n[1].asked(), n[2].asked(); len(a) != 1 || len(b) != 1 {
		t.Errorf("n2 was asked %v, n3 %v", a, b)
	}

	// Nobody has it for a while.
	k = w.task("n2", dts.Pending, "")
	w.mu.Lock()
	w.holders[k.Shard] = ""
	w.mu.Unlock()
	time.AfterFunc(100*time.Millisecond, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.holders[k.Shard] = "n3"
	})
	if _, err := n[0].router.DoTask(ctx, tenant, k.ID, dts.RunNow, "alice"); err != nil {
		t.Error(err)
	}
}

func TestNobodyIsResponsible(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(w *world, n []*node, k *dts.Task)
		says    string
	}{
		{"nobody holds the shard", func(w *world, _ []*node, k *dts.Task) { w.holders[k.Shard] = "" }, "no server is responsible for the task "},
		{"the holder does not live", func(w *world, _ []*node, k *dts.Task) { w.holders[k.Shard] = "n9" }, "no server is responsible for the task "},
		{"nobody wants it", func(_ *world, n []*node, _ *dts.Task) { n[1].err = errElsewhere }, "is just going from one server to another"},
		{"the holder stops", func(_ *world, n []*node, _ *dts.Task) {
			n[1].err = dts.Errorf(dts.ErrUnavailable, "the server is stopping")
		}, "the server is stopping"},
		{"the holder cannot be reached", func(_ *world, n []*node, _ *dts.Task) { n[1].server.Close() }, "the server n2, which is responsible for the task "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, n := servers(t, "n1", "n2")
			k := w.task("n2", dts.Pending, "")
			tt.prepare(w, n, k)
			begun := time.Now()
			_, err := n[0].router.DoTask(ctx, tenant, k.ID, dts.RunNow, "alice")
			if took := time.Since(begun); dts.CodeOf(err) != dts.ErrUnavailable || !strings.Contains(err.Error(), tt.says) || took < n[0].router.retry || took > 5*n[0].router.retry {
				t.Errorf("%v after %s: %v", dts.CodeOf(err), took, err)
			}
		})
	}
}

func TestRefusalsArePassedOn(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	k := w.task("n2", dts.Pending, "")
	for _, want := range []error{
		&dts.Error{Code: dts.ErrInvalid, Message: "the request is not valid", Fields: []dts.FieldError{{Field: "run_at", Message: "is in the past"}}},
		dts.Errorf(dts.ErrConflict, "the task is SUCCESS: %s", "no"),
		dts.Errorf(dts.ErrFull, "the disk is full"),
		dts.Errorf(dts.ErrUnknown, "who knows"),
	} {
		n[1].set(func() { n[1].err = want })
		_, err := n[0].router.DoTask(ctx, tenant, k.ID, dts.RunNow, "alice")
		if dts.CodeOf(err) != dts.CodeOf(want) || err.Error() != want.Error() {
			t.Errorf("%v became %v", want, err)
		}
	}
	n[1].set(func() { n[1].err = errors.New("a table is missing") })
	_, err := n[0].router.DoTask(ctx, tenant, k.ID, dts.RunNow, "alice")
	e, _ := errors.AsType[*dts.Error](err)
	if e == nil || e.Code != dts.ErrInternal || strings.Contains(e.Message, "table") || !strings.Contains(e.Err.Error(), "server n2: a table is missing") {
		t.Errorf("an internal error became %#v", err)
	}
	if did := n[1].asked(); len(did) != 5 {
		t.Errorf("it was asked %d times", len(did))
	}
}

// A call whose outcome is unknown is sent again only if that does no harm.
func TestDiesInMidCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		calls int32 // 2: it is sent again; delete finds that it need not be
		call  func(n *node, k *dts.Task, r *dts.RecurringTask) error
	}{
		{"cancel", 2, func(n *node, k *dts.Task, _ *dts.RecurringTask) error {
			_, err := n.router.DoTask(ctx, tenant, k.ID, dts.Cancel, "alice")
			return err
		}},
		{"modify", 2, func(n *node, k *dts.Task, _ *dts.RecurringTask) error {
			_, err := n.router.ModifyTask(ctx, tenant, k.ID, dts.TaskPatch{})
			return err
		}},
		{"delete", 1, func(n *node, k *dts.Task, _ *dts.RecurringTask) error {
			_, err := n.router.DoTask(ctx, tenant, k.ID, dts.Delete, "alice")
			return err
		}},
		{"pause", 2, func(n *node, _ *dts.Task, r *dts.RecurringTask) error {
			_, err := n.router.PauseRecurring(ctx, tenant, r.ID, now, "", "alice")
			return err
		}},
		{"run-now", 1, func(n *node, k *dts.Task, _ *dts.RecurringTask) error {
			_, err := n.router.DoTask(ctx, tenant, k.ID, dts.RunNow, "alice")
			return err
		}},
		{"retry", 1, func(n *node, k *dts.Task, _ *dts.RecurringTask) error {
			_, err := n.router.DoTask(ctx, tenant, k.ID, dts.RetryNow, "alice")
			return err
		}},
		{"trigger", 1, func(n *node, _ *dts.Task, r *dts.RecurringTask) error {
			_, err := n.router.TriggerRecurring(ctx, tenant, r.ID, "alice")
			return err
		}},
		{"resume", 2, func(n *node, _ *dts.Task, r *dts.RecurringTask) error {
			_, err := n.router.ResumeRecurring(ctx, tenant, r.ID, true, "alice")
			return err
		}},
		{"backfill", 2, func(n *node, _ *dts.Task, r *dts.RecurringTask) error {
			_, err := n.router.BackfillRecurring(ctx, tenant, r.ID, dts.BackfillRequest{From: now, To: now}, "alice")
			return err
		}},
		{"create", 1, func(n *node, _ *dts.Task, _ *dts.RecurringTask) error {
			_, err := n.router.CreateTasks(ctx, []*dts.Task{{ID: dts.NewID(now), TenantID: tenant, IdempotencyKey: "a"}, {ID: dts.NewID(now), TenantID: tenant}})
			return err
		}},
		{"create with keys", 2, func(n *node, _ *dts.Task, _ *dts.RecurringTask) error {
			list, err := n.router.CreateTasks(ctx, []*dts.Task{{ID: dts.NewID(now), TenantID: tenant, IdempotencyKey: "a"}, {ID: dts.NewID(now), TenantID: tenant, IdempotencyKey: "b"}})
			if err == nil && (!list[0].Existed || !list[1].Existed) {
				return errors.New("the second call has not found what the first one made")
			}
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, n := servers(t, "n1", "n2")
			k, r := w.task("n2", dts.Pending, ""), w.everyHour("n2")
			for i := range w.holders {
				w.holders[i] = "n2" // also of what is created
			}
			var calls atomic.Int32
			n[1].before = func(rw http.ResponseWriter, req *http.Request) bool {
				if calls.Add(1) > 1 {
					return true
				}
				n[1].handler.ServeHTTP(discard{http.Header{}}, req) // it is done, but the answer is lost
				return cut(rw, req)
			}
			err := tt.call(n[0], k, r)
			harmless := tt.calls == 2 || tt.name == "delete"
			switch {
			case calls.Load() != tt.calls:
				t.Errorf("%d calls, want %d: %v", calls.Load(), tt.calls, err)
			case harmless && err != nil:
				t.Error(err)
			case !harmless && (dts.CodeOf(err) != dts.ErrUnknown || !strings.Contains(err.Error(), "the server n2")):
				t.Error(err)
			}
		})
	}
}

// discard is a response that nobody gets.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// What the second call is refused may have been done by the first.
func TestRefusedAfterDyingInMidCall(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	k := w.task("n2", dts.Pending, "")
	n[1].before = func(rw http.ResponseWriter, r *http.Request) bool {
		n[1].set(func() { n[1].err = dts.Errorf(dts.ErrConflict, "it has started"); n[1].before = nil })
		return cut(rw, r)
	}
	_, err := n[0].router.ModifyTask(ctx, tenant, k.ID, dts.TaskPatch{})
	if dts.CodeOf(err) != dts.ErrUnknown || !strings.Contains(err.Error(), "asking again does no harm") {
		t.Error(err)
	}
}

// A server that hangs keeps its callers only until it counts as dead.
func TestHangs(t *testing.T) {
	t.Parallel()
	w, n := servers(t, "n1", "n2", "n3")
	n[1].during = func(ctx context.Context, _ string) { <-ctx.Done() }
	n[1].err = context.Canceled
	n[0].router.retry = 2 * time.Second
	time.AfterFunc(300*time.Millisecond, func() { w.dies("n2", "n3") })
	a, b := w.task("n2", dts.Pending, ""), w.task("n2", dts.Running, "n2")
	b.Node = "n2"
	done := make(chan error)
	go func() {
		_, err := n[0].router.DoTask(ctx, tenant, a.ID, dts.RunNow, "alice")
		done <- err
	}()
	begun := time.Now()
	w.mu.Lock()
	c := *a
	c.ID, c.Status = dts.NewID(time.Now()), dts.Pending
	w.tasks[c.ID] = &c
	w.mu.Unlock()
	if got, err := n[0].router.DoTask(ctx, tenant, c.ID, dts.Cancel, "alice"); err != nil || got.Status != dts.Cancelled {
		t.Errorf("cancel: %v, %v", got, err)
	}
	if err := <-done; dts.CodeOf(err) != dts.ErrUnknown {
		t.Errorf("run-now: %v", err)
	}
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if did := n[2].asked(); !slices.Equal(did, []string{"cancel"}) {
		t.Errorf("n3 was asked for %v", did)
	}
}

func TestCallerGivesUp(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	n[1].during = func(ctx context.Context, _ string) { <-ctx.Done() }
	k := w.task("n2", dts.Pending, "")
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := n[0].router.DoTask(short, tenant, k.ID, dts.Cancel, "alice"); dts.CodeOf(err) != dts.ErrUnknown {
		t.Error(err)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestCreates(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	tasks := func(keys ...string) (list []*dts.Task) {
		for _, key := range keys {
			no := false
			k := &dts.Task{ID: dts.NewID(now), TenantID: tenant, IdempotencyKey: key, RequestHash: "h", Node: "n1", PickedAt: now}
			k.Retry.Jitter = &no
			list = append(list, k)
		}
		return list
	}
	if list, err := n[0].router.CreateTasks(ctx, tasks("a", "")); err != nil || len(list) != 2 || len(n[0].asked()) != 1 || len(n[1].asked()) != 0 {
		t.Fatalf("here: %v, %v", list, err)
	}
	for i := range w.holders {
		w.holders[i] = "n2"
	}
	in := tasks("a", "b", "")
	list, err := n[0].router.CreateTasks(ctx, in)
	if did := n[1].asked(); err != nil || len(list) != 3 || len(n[0].asked()) != 0 || len(did) != 1 || did[0] != "create 3" {
		t.Fatalf("there: %v, %v, asked for %v", list, err, did)
	}
	// Whoever creates a task names it: of two servers that were asked for the same, each must know its own.
	if !list[0].Existed || list[0].Item.ID == in[0].ID || list[1].Existed || list[1].Item.ID == in[1].ID || list[2].Item.ID == in[2].ID {
		t.Errorf("there: %+v", list)
	}
	there := w.tasks[list[1].Item.ID]
	if there.Node != "" || !there.PickedAt.IsZero() || there.RequestHash != "h" || there.Retry.Jitter == nil || *there.Retry.Jitter || list[1].Item.Node != "" {
		t.Errorf("it became %+v", there)
	}
	r := &dts.RecurringTask{ID: dts.NewID(now), TenantID: tenant, RequestHash: "h"}
	c, err := n[0].router.CreateRecurring(ctx, r)
	if err != nil || c.Item.ID == r.ID || c.Existed || w.recurring[c.Item.ID].RequestHash != "h" {
		t.Errorf("recurring: %+v, %v", c, err)
	}

	// While nobody holds a shard, it waits.
	w.mu.Lock()
	w.holders = [dts.Shards]string{}
	w.mu.Unlock()
	time.AfterFunc(100*time.Millisecond, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.holders[5] = "n2"
	})
	if list, err := n[0].router.CreateTasks(ctx, tasks("")); err != nil || list[0].Item.Shard != 5 {
		t.Errorf("later: %v, %v", list, err)
	}
}

func TestCreatesAsManyAsThereMayBe(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	for i := range w.holders {
		w.holders[i] = "n2"
	}
	list := make([]*dts.Task, dts.MaxBulk)
	for i := range list {
		list[i] = &dts.Task{ID: dts.NewID(time.Now()), TenantID: tenant, Spec: dts.Spec{TargetConfig: []byte(`{"url":"` + strings.Repeat("x", 3000) + `"}`)}}
	}
	made, err := n[0].router.CreateTasks(ctx, list)
	if err != nil || len(made) != len(list) || len(w.tasks) != len(list) {
		t.Fatalf("%d of %d: %v", len(w.tasks), len(list), err)
	}
	for _, k := range list {
		k.TargetConfig = []byte(strings.Repeat("x", 6000))
	}
	if _, err := n[0].client.call(ctx, w.live[1], "CreateTasks", &request{}, list...); err == nil || !strings.Contains(err.Error(), "413") {
		t.Errorf("too much: %v", err)
	}
}

func TestBulk(t *testing.T) {
	t.Parallel()
	w, n := servers(t, "n1", "n2", "n3")
	fill := func() {
		for _, id := range []string{"n1", "n2", "n3"} {
			w.task(id, dts.Pending, "")
			w.task("n1", dts.Running, id)
		}
	}
	all := dts.BulkChange{Verb: dts.BulkCancel, Filter: dts.TaskFilter{TenantID: tenant}, Actor: "alice"}
	fill()
	dry := all
	dry.DryRun = true
	if r, err := n[0].router.Bulk(ctx, dry); r != (dts.BulkResult{Matched: 6, DryRun: true}) || err != nil {
		t.Errorf("dry run: %+v, %v", r, err)
	}
	if r, err := n[0].router.Bulk(ctx, all); r != (dts.BulkResult{Matched: 6, Done: 6}) || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	again := all
	again.Verb, again.Filter.Statuses = dts.BulkRetry, []dts.Status{dts.Cancelled}
	if r, err := n[0].router.Bulk(ctx, again); r != (dts.BulkResult{Matched: 6, Done: 6}) || err != nil {
		t.Errorf("retry: %+v, %v", r, err)
	}
	if r, err := n[2].router.Bulk(ctx, all); r != (dts.BulkResult{Matched: 6, Done: 6}) || err != nil {
		t.Errorf("asked of another server: %+v, %v", r, err)
	}
	fill()
	n[1].set(func() { n[1].err = dts.Errorf(dts.ErrConflict, "not today") })
	r, err := n[0].router.Bulk(ctx, all)
	if r.Done != 4 || dts.CodeOf(err) != dts.ErrUnknown || !strings.Contains(err.Error(), "4 tasks were cancelled, but not all") || !strings.Contains(err.Error(), "the server n2: not today") {
		t.Errorf("%+v, %v", r, err)
	}
	n[1].set(func() { n[1].err = nil; n[1].before = cut })
	r, err = n[0].router.Bulk(ctx, all)
	if r.Done != 0 || dts.CodeOf(err) != dts.ErrUnknown || !strings.Contains(err.Error(), "the server n2: does not answer") {
		t.Errorf("%+v, %v", r, err)
	}
	w.dies("n2", "n3")
	if r, err = n[0].router.Bulk(ctx, all); r.Done != 2 || err != nil {
		t.Errorf("after the take-over: %+v, %v", r, err)
	}
}

// TestBulkGivesUp: what cannot be done is matched once, however often the servers were asked.
func TestBulkGivesUp(t *testing.T) {
	t.Parallel()
	w, n := servers(t, "n1", "n2")
	for _, id := range []string{"n1", "n2"} {
		w.task(id, dts.Pending, "")
	}
	r, err := n[0].router.Bulk(ctx, dts.BulkChange{Verb: dts.BulkPause, Filter: dts.TaskFilter{TenantID: tenant, BatchID: "stubborn"}})
	if r != (dts.BulkResult{Matched: 2}) || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestStatusIsThatOfThisServer(t *testing.T) {
	_, n := servers(t, "n1", "n2")
	if s, err := n[0].router.Status(), n[0].router.Ready(); s.Node != "n1" || err.Error() != "not today, says n1" {
		t.Errorf("%+v, %v", s, err)
	}
}

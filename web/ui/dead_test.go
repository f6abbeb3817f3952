package ui

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"dts"
)

func failed(queue, name, lastError string) (dts.Spec, func(*dts.Task)) {
	spec := named(name, command("true"))
	spec.Queue = queue
	return spec, func(t *dts.Task) {
		ran(dts.Failed, time.Hour, time.Second, 10)(t)
		t.LastError, t.Attempts = lastError, 3
	}
}

func TestDeadLetters(t *testing.T) {
	s := newSite(t)
	s.get("/ui/dead", 200).want("There are none")
	mail := s.add(failed("mail", "welcome", "the answer was <503>"))
	s.add(failed("mail", "digest", "exit code 1"))
	s.add(failed("reports", "monthly", "exit code 2"))
	s.add(command("true"), ran(dts.Success, time.Minute, time.Second, 1))

	d := s.get("/ui/dead", 200)
	d.row("welcome").want("mail", "59 min ago", "3", "the answer was <503>")
	if n := len(d.all("tr", "", "")); n != 4 {
		t.Errorf("%d rows", n)
	}
	d = s.get("/ui/dead?queue=mail&error=exit", 200)
	if text := d.text(); !strings.Contains(text, "digest") || strings.Contains(text, "monthly") || strings.Contains(text, "welcome") {
		t.Errorf("the filter shows %s", text)
	}
	if self := d.id("live").attr("hx-get"); self != "/ui/dead?error=exit&queue=mail" {
		t.Errorf("it refreshes %s", self)
	}
	s.get("/ui/dead?queue=nothing", 200).want("None of the dead letters is like that")

	// One of them: the reader comes back to the list.
	w, _ := s.post("/ui/tasks/"+mail.ID+"/retry", url.Values{"from": {"/ui/dead?queue=mail"}})
	if to := w.Header().Get("Location"); w.Code != 303 || to != "/ui/dead?queue=mail&done=retry-dead" {
		t.Errorf("retry: %d to %s", w.Code, to)
	}
	w, _ = s.post("/ui/tasks/"+s.tasks[1].ID+"/retry", url.Values{"from": {"//elsewhere/ui/dead/"}})
	if to := w.Header().Get("Location"); to != "/ui/tasks/"+s.tasks[1].ID+"?done=retry" {
		t.Errorf("retry leads to %s", to)
	}
}

func TestRequeueAndDiscard(t *testing.T) {
	s := newSite(t)
	s.add(failed("mail", "welcome", "x"))
	s.add(failed("mail", "digest", "x"))
	s.add(failed("reports", "monthly", "x"))

	// It counts first, and changes nothing.
	w, d := s.post("/ui/dead/requeue", url.Values{"queue": {"mail"}})
	if w.Code != 200 || s.tasks[0].Status != dts.Failed {
		t.Errorf("%d, %s", w.Code, s.tasks[0].Status)
	}
	d.want("Requeue 2 dead letters?", "Those of the queue “mail”.", "Each gets another attempt, now.")
	if d.id("back").attr("href") != "/ui/dead?queue=mail" {
		t.Error("there is no way back")
	}
	form := url.Values{}
	for _, in := range d.all("input", "type", "hidden") {
		form.Set(in.attr("name"), in.attr("value"))
	}
	w, _ = s.post("/ui/dead/requeue", form)
	if to := w.Header().Get("Location"); w.Code != 303 || to != "/ui/dead?queue=mail&done=requeue&n=2" {
		t.Errorf("%d to %s", w.Code, to)
	}
	s.get("/ui/dead?queue=mail&done=requeue&n=2", 200).want("Requeued 2 tasks.")
	last := s.bulks[len(s.bulks)-1]
	if last.Verb != dts.BulkRetry || last.DryRun || last.Filter.Queue != "mail" || last.Filter.TenantID != dts.DefaultTenant || last.Actor != "admin" || len(last.Filter.Statuses) != 1 {
		t.Errorf("it did %+v", last)
	}
	if s.tasks[0].Status != dts.Pending || s.tasks[2].Status != dts.Failed {
		t.Errorf("now %s and %s", s.tasks[0].Status, s.tasks[2].Status)
	}

	_, d = s.post("/ui/dead/discard", url.Values{"queue": {"mail"}})
	d.want("There is nothing to discard")
	_, d = s.post("/ui/dead/discard", nil)
	d.want("Discard 1 dead letter?", "This cannot be undone.")
	if w, _ := s.post("/ui/dead/discard", url.Values{"yes": {"1"}}); w.Code != 303 || len(s.tasks) != 2 {
		t.Errorf("%d, %d tasks", w.Code, len(s.tasks))
	}
	if w, _ := s.post("/ui/dead/explode", nil); w.Code != 404 {
		t.Errorf("an unknown verb: %d", w.Code)
	}
	s.fail = dts.Errorf(dts.ErrUnavailable, "not now")
	if w, d := s.post("/ui/dead/discard", nil); w.Code != 503 {
		t.Errorf("%d: %s", w.Code, d.text())
	}
}

func TestBatch(t *testing.T) {
	s := newSite(t)
	id := dts.NewID(testNow)
	for _, status := range []dts.Status{dts.Pending, dts.Running, dts.Success, dts.Failed, dts.Failed} {
		s.add(named("one "+string(status), command("true")), func(t *dts.Task) { t.Status, t.BatchID = status, id })
	}
	path := "/ui/batches/" + id
	d := s.get(path, 200)
	d.want("at work", "3 of 5 tasks have ended", "one PENDING")
	if p := d.id("progress"); p.attr("value") != "3" || p.attr("max") != "5" {
		t.Errorf("progress %s of %s", p.attr("value"), p.attr("max"))
	}
	d.id("count-failed").want("2 failed")
	d.id("count-skipped").want("0 skipped")
	d = s.get(path+"?status=failed", 200)
	if n := len(d.all("tr", "", "")); n != 3 {
		t.Errorf("%d rows of what failed", n)
	}
	s.get(path+"?status=odd", 404)
	s.get("/ui/batches/x", 404)
	s.get("/ui/batches/"+dts.NewID(testNow), 404)
	s.get("/ui/tasks/"+s.tasks[0].ID, 200).id("batch").want(id)

	w, _ := s.post(path+"/retry", nil)
	if to := w.Header().Get("Location"); w.Code != 303 || to != path+"?done=bulk-retry&n=2" {
		t.Errorf("retry: %d to %s", w.Code, to)
	}
	s.get(path+"?done=bulk-retry&n=2", 200).want("Requeued 2 tasks.")
	if w, _ := s.post(path+"/cancel", nil); w.Code != 303 {
		t.Errorf("cancel: %d", w.Code)
	}
	d = s.get(path+"?done=bulk-cancel&n=1", 200)
	d.want("Cancelled 1 task.", "done", "5 of 5 tasks have ended")
	if d.has("do-cancel") || d.has("do-retry") {
		t.Error("nothing is left to do")
	}
	if w, _ := s.post(path+"/delete", nil); w.Code != 404 {
		t.Errorf("delete: %d", w.Code)
	}
}

package ui

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"dts"
)

// waited is a task that waited for others and for a slot, and then ran.
func waited(t *dts.Task) {
	ran(dts.Success, 5*time.Minute, time.Minute, 120e6)(t)
	t.DueAt = t.StartedAt.Add(-2 * time.Minute)
	t.ResolvedAt, t.QueuedUS = t.DueAt.Add(30*time.Second), 89_999_000
}

func TestWhereTheTimeWent(t *testing.T) {
	s := newSite(t)
	task := s.add(command("true"), waited)
	went := s.get("/ui/tasks/"+task.ID, 200).id("went")
	went.want("30 s waiting for other tasks", "1 min 29 s ready, waiting for a slot or a limit", "1 ms until the scheduler started it", "1 min to run, retries included")
	if strings.Contains(went.text(), "slow") {
		t.Errorf("slow, and nothing was asked for: %s", went.text())
	}
	at, parts := 0, went.all("rect", "", "")
	for _, r := range parts {
		x, _ := strconv.Atoi(r.attr("x"))
		width, _ := strconv.Atoi(r.attr("width"))
		if x != at || width < barLeast {
			t.Errorf("%s is at %d and %d wide; the one before ends at %d", r.attr("class"), x, width, at)
		}
		at += width
	}
	if len(parts) != 4 || at != barWidth {
		t.Errorf("%d parts, %d wide", len(parts), at)
	}

	task.SLAMet = new(bool)
	went = s.get("/ui/tasks/"+task.ID, 200).id("went")
	went.want("It waited for a slot or a limit.")
	if slow := went.class("slow"); len(slow) != 1 || !strings.Contains(slow[0].text(), "1 min 29 s") {
		t.Errorf("%d parts are slow", len(slow))
	}

	pending := s.add(command("true"), nil)
	if s.get("/ui/tasks/"+pending.ID, 200).has("went") {
		t.Error("a task that has not started took time")
	}
	running := s.add(command("true"), ran(dts.Running, 5*time.Second, 0, 10))
	s.get("/ui/tasks/"+running.ID, 200).id("went").want("5 s to run, retries included, so far")
}

func TestTaskLifeFacts(t *testing.T) {
	s := newSite(t)
	spec := command("true")
	spec.Retry.On = &dts.RetryOn{ExitCodes: []string{"75"}}
	spec.Resources, spec.Priority, spec.Preemptible = &dts.Resources{CPU: 1, MemoryMB: 1536}, dts.Low, true
	spec.WarnLateSeconds, spec.WarnLongerSeconds, spec.WarnShorterSeconds = 5, 60, 0.5
	spec.ConcurrencyKey = "db"
	task := s.add(spec, func(t *dts.Task) {
		t.DedupeKey = "k<1>"
		t.Warnings = []dts.Warning{dts.WarnLate, dts.WarnLong, dts.WarnShort}
	})
	d := s.get("/ui/tasks/"+task.ID, 200)
	d.want("Dedupe key k<1>", "Takes 1 core, 1.5 GiB of memory", "only after exit code 75", "Preemptible", "at most 1 at once with the key db",
		"when it starts more than 5 s late, or takes more than 1 min, or succeeds in less than 500 ms")
	d.id("warnings").want("It started more than 5 s late.", "An attempt took longer than 1 min.", "It succeeded in less than 500 ms.")
}

func TestPausedTask(t *testing.T) {
	s := newSite(t)
	task := s.add(command("true"), func(t *dts.Task) { t.RunAt = testNow.Add(time.Hour) })
	path := "/ui/tasks/" + task.ID
	w, _ := s.post(path+"/pause", nil)
	if w.Code != 303 || w.Header().Get("Location") != path+"?done=pause-task" {
		t.Errorf("pause: %d to %s", w.Code, w.Header().Get("Location"))
	}
	d := s.get(path+"?done=pause-task", 200)
	d.want("Paused. It does not start until it is resumed.")
	d.id("waits").want("This run is paused")
	if d.has("do-pause") || !d.has("do-resume") {
		t.Error("a paused task can be resumed, and not paused")
	}
	if w, _ := s.post(path+"/resume", nil); w.Code != 303 || w.Header().Get("Location") != path+"?done=resume-task" {
		t.Errorf("resume: %d to %s", w.Code, w.Header().Get("Location"))
	}
	if d := s.get(path+"?done=resume-task", 200); d.has("waits") || d.has("do-resume") {
		t.Error("it is paused still")
	}
}

func TestWaitsForOthers(t *testing.T) {
	s := newSite(t)
	for _, tt := range []struct {
		n    int
		mode dts.DependencyMode
		want string
	}{{1, "", "This run waits for another task."}, {3, "", "This run waits for 3 other tasks."}, {3, dts.DependsAny, "This run waits for one of 3 other tasks."}} {
		task := s.add(command("true"), func(t *dts.Task) { t.Unresolved, t.DependsMode = tt.n, tt.mode })
		s.get("/ui/tasks/"+task.ID, 200).id("waits").want(tt.want)
	}
	s.get("/ui/?status=pending", 200).want("waits for 3 other tasks")
}

func TestTaskGraph(t *testing.T) {
	s := newSite(t)
	task := s.add(named("report", command("true")), func(t *dts.Task) { t.Unresolved, t.DependsMode = 1, dts.DependsAny })
	id := func() string { return dts.NewID(testNow) }
	a, b, gone, far, mail, alarm := id(), id(), id(), id(), id(), id()
	g := &dts.Graph{
		Tasks: []dts.GraphTask{{ID: task.ID, Name: "report", Status: dts.Pending}, {ID: a, Name: "load <a>", Status: dts.Success}, {ID: b, Status: dts.Pending, Unresolved: 2},
			{ID: far, Name: "far", Status: dts.Failed}, {ID: mail, Name: "mail", Status: dts.Pending, Unresolved: 1}, {ID: alarm, Name: "alarm", Status: dts.Skipped}},
		Dependencies: []dts.Dependency{
			{ChildID: task.ID, ParentID: a, Type: dts.MustSucceed, State: dts.DependencySatisfied},
			{ChildID: task.ID, ParentID: b, Type: dts.MustFinish, State: dts.DependencyOpen},
			{ChildID: task.ID, ParentID: gone, Type: dts.MustSucceed, State: dts.DependencyFailed},
			{ChildID: a, ParentID: far, Type: dts.MustFail, State: dts.DependencySatisfied},
			{ChildID: b, ParentID: far, Type: dts.MustFail, State: dts.DependencyOverridden},
			{ChildID: mail, ParentID: task.ID, Type: dts.MustSucceed, State: dts.DependencyOpen},
			{ChildID: alarm, ParentID: task.ID, Type: dts.MustFail, State: dts.DependencyOverridden},
		},
	}
	s.graphs = map[string]*dts.Graph{task.ID: g}
	d := s.get("/ui/tasks/"+task.ID, 200)
	up, down := d.id("up"), d.id("down")
	up.want("one of these", "Further away: 1", "far failed")
	up.row("load <a>").want("success succeed met")
	up.row(b).want("pending waits for 2 end open")
	up.row(gone).want("deleted succeed cannot be met")
	if rows := up.all("tr", "", ""); !strings.Contains(rows[1].text(), gone) || !strings.Contains(rows[2].text(), b) {
		t.Error("what stands in the way is not first")
	}
	if links := up.all("a", "href", "/ui/tasks/"+a); len(links) != 1 {
		t.Errorf("%d links to a task that it depends on", len(links))
	}
	down.row("mail").want("pending waits for 1 succeed open")
	down.row("alarm").want("skipped fail overridden")
	if strings.Contains(down.text(), "Further away") {
		t.Error("there is nothing behind")
	}

	g.Truncated = true
	for i := range 400 {
		child := id()
		g.Tasks = append(g.Tasks, dts.GraphTask{ID: child, Name: "child " + strconv.Itoa(i), Status: dts.Pending})
		from := task.ID
		if i >= 200 {
			from = mail
		}
		g.Dependencies = append(g.Dependencies, dts.Dependency{ChildID: child, ParentID: from, State: dts.DependencyOpen})
	}
	d = s.get("/ui/tasks/"+task.ID, 200)
	d.id("down").want("And 152 more.", "Further away: 100 and 100 more")
	d.want("There are more than the nearest 300 tasks")

	alone := s.add(command("true"), nil)
	d = s.get("/ui/tasks/"+alone.ID, 200)
	if d.has("graph") {
		t.Error("a task without dependencies shows some")
	}
	if to := d.id("new-after").attr("href"); to != "/ui/new?after="+alone.ID {
		t.Errorf("a task after it: %s", to)
	}
}

package ui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dts"
	"dts/web"
	"dts/web/api"
)

// findBrowser returns the path of a Chromium. Without one the test is skipped, unless DTS_REQUIRE_BROWSER=1.
func findBrowser(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("DTS_REQUIRE_BROWSER") == "1" {
		t.Fatal("DTS_REQUIRE_BROWSER=1 is set and there is no chromium on the PATH")
	}
	t.Skip("SKIPPED: THE PAGES ARE NOT TESTED IN A BROWSER, because there is no chromium on the PATH. Install it (apt-get install chromium); DTS_REQUIRE_BROWSER=1 makes this a failure.")
	return ""
}

// browser starts a headless Chromium with a new profile. What its console says fails the test.
func browser(t *testing.T, path string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1200, 900), chromedp.WSURLReadTimeout(60*time.Second),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	watchConsole(t, ctx)
	return ctx
}

// whole is a fake that has every method of the API; those of others are for what the pages do not use.
type whole struct {
	*fake
	others
}

type others struct {
	api.Store
	api.Scheduler
}

// serve starts the real server with the fake behind the pages and the API.
func serve(t *testing.T, f *fake) string {
	t.Helper()
	h, err := New(Options{Store: f, Scheduler: f, Outputs: f, Tokens: f, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := web.New(web.Options{Listen: "127.0.0.1:0", API: api.Options{Store: whole{fake: f}, Scheduler: whole{fake: f}, Outputs: f}, Tokens: f, UI: h})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Stop(ctx)
	})
	return s.URL()
}

type action0 = chromedp.Action[chromedp.Void]

// until waits until a JavaScript expression is true, across changes of the page.
func until(expr string) action0 {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		for {
			ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expr+")"))
			if ok && err == nil {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("never true: %s (%v)", expr, err)
			case <-time.After(30 * time.Millisecond):
			}
		}
	})
}

func click(css string) action0       { return chromedp.Click(chromedp.CSS(css)) }
func typed(css, text string) action0 { return chromedp.SendKeys(chromedp.CSS(css), text) }
func visible(css string) action0     { return chromedp.WaitVisible(chromedp.CSS(css)) }
func gone(css string) action0        { return chromedp.WaitNotVisible(chromedp.CSS(css)) }

func TestInBrowser(t *testing.T) {
	path := findBrowser(t)
	f := newFake(time.Now)
	f.calendars = []*dts.Calendar{{Name: "holidays", Days: []string{"12-25"}}}
	running := f.add(named("a long run", command("make", "all")), func(t *dts.Task) {
		t.Status, t.StartedAt, t.Attempts = dts.Running, time.Now(), 1
	})
	attempt := &dts.Attempt{TaskID: running.ID, TenantID: dts.DefaultTenant, Number: 1, State: dts.AttemptRunning, StartedAt: time.Now()}
	f.attempts[running.ID] = []*dts.Attempt{attempt}
	live := newLiveOutput()
	live.write("first line\n", false)
	f.tails[running.ID] = live

	base := serve(t, f)
	ctx := browser(t, path)
	step := func(name string, actions ...action0) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			page, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
			t.Fatalf("%s: %v\n%s", name, err, page)
		}
	}
	read := func(expr string) string {
		t.Helper()
		s, err := chromedp.Run(ctx, chromedp.Evaluate[string](expr))
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		return s
	}

	step("sign in",
		chromedp.Navigate(base),
		visible("#token"),
		typed("#token", goodToken+"\r"),
		visible("#count-running"),
		until(`document.cookie === ''`)) // scripts cannot read the session

	step("preview a schedule",
		click(`a[href="/ui/new"]`),
		visible("#cron"),
		until(`document.getElementById('zone').value !== '' && document.getElementById('zones').options.length > 100`),
		chromedp.SetValue(chromedp.CSS("#zone"), "Europe/Berlin"),
		typed("#name", "nightly"),
		typed("#shell", "./backup.sh"),
		typed("#cron", "30 2 * * *"),
		until(`document.querySelectorAll('#preview li time').length === 5`))
	preview := read(`document.getElementById('preview').innerText`)
	if !strings.Contains(preview, "At 02:30 every day") || strings.Count(preview, "02:30:00") != 5 {
		t.Errorf("the preview says %q", preview)
	}
	step("what most leave as it is, is out of the way", until(`!document.getElementById('jitter').checkVisibility()`), click("#more-when > summary"), visible("#jitter"))
	f.change(func() {
		f.effects = func(p *dts.Preview) {
			p.Instants[1].Runs = false
			p.Instants[1].Effects = []dts.PreviewEffect{{Kind: dts.EffectCalendar, Text: "holidays: Karfreitag"}}
		}
	})
	step("what calendars do",
		gone("#limit"), chromedp.SetValue(chromedp.CSS("#missed"), string(dts.RunAllMissed)), visible("#limit"),
		click(`input[name="exclude"][value="holidays"]`),
		until(`document.querySelector('#preview li.off')?.innerText.includes('holidays: Karfreitag')`),
		until(`getComputedStyle(document.querySelector('#preview li.off time')).textDecorationLine === 'line-through'`))
	f.change(func() { f.effects = nil })
	step("more of them", chromedp.SetValue(chromedp.CSS("#count"), "10"),
		chromedp.Evaluate[chromedp.Void](`document.getElementById('count').dispatchEvent(new Event('change', { bubbles: true }))`),
		until(`document.querySelectorAll('#preview li time').length === 10`))
	step("the fields follow the choice",
		click(`input[value="every"]`),
		visible("#every"), gone("#cron"),
		click(`input[value="HTTP_CALLBACK"]`),
		visible("#url"), gone("#shell"),
		click(`input[value="PING"]`),
		visible("#grace"), gone("#url"), gone("#retries"), gone("#jitter"),
		click(`input[value="WORKFLOW"]`),
		visible("#steps"), gone("#grace"), gone("#retries"), visible("#jitter"),
		click(`input[value="COMMAND"]`),
		click(`input[value="cron"]`),
		visible("#shell"),
		until(`document.querySelectorAll('#preview li time').length === 10`))
	step("save",
		click("#save"),
		visible("#upcoming-title"),
		until(`location.pathname.startsWith('/ui/recurring/') && document.body.innerText.includes('Added.')`))

	step("see it in the list",
		click(`a[href="/ui/"]`),
		until(`[...document.querySelectorAll('th a')].some((a) => a.textContent === 'nightly')`))
	local := read(`document.querySelector('time[data-local]').textContent`)
	if strings.Contains(local, "UTC") {
		t.Errorf("a time is not shown in the reader's zone: %q", local)
	}

	// A refresh brings what is new, and keeps the focus and the scroll position.
	step("focus", chromedp.Focus(chromedp.CSS("#tab-Failed")))
	f.add(named("newcomer", command("true")), func(t *dts.Task) { t.Status, t.StartedAt = dts.Failed, time.Now() })
	step("refresh",
		until(`document.body.innerText.includes('newcomer')`),
		until(`document.activeElement.id === 'tab-Failed'`))

	step("output as it comes",
		click("#t-"+running.ID),
		until(`document.querySelector('#output pre')?.textContent === 'first line\n'`),
		visible("#following"))
	live.write("second <b>line</b>\n", false)
	step("more output", until(`document.querySelector('#output pre').textContent === 'first line\nsecond <b>line</b>\n'`))

	// Who comes to a run that has printed much sees what is newest.
	for i := range 300 {
		live.write(fmt.Sprintf("line %d\n", i), false)
	}
	step("the newest of much output",
		chromedp.Navigate(base+"/ui/tasks/"+running.ID),
		until(`document.querySelector('#output pre')?.textContent.endsWith('line 299\n')`), visible("#following"),
		until(`(() => { const pre = document.querySelector('#output pre'); return pre.scrollTop > 0 && pre.scrollHeight - pre.scrollTop - pre.clientHeight < 2; })()`))

	// An open question is not refreshed away.
	step("ask", click("#do-cancel"), visible("#yes-cancel"))
	f.mu.Lock()
	f.tasks[0].LastError = "seen in a refresh"
	f.mu.Unlock()
	step("a refresh is due",
		until(`window.due || document.getElementById('live').addEventListener('htmx:beforeRequest', () => { window.due = true; })`),
		visible("#yes-cancel"))
	if strings.Contains(read(`document.body.innerText`), "seen in a refresh") {
		t.Error("the page was refreshed while a question was open")
	}
	step("close", chromedp.KeyEvent(kb.Escape), until(`!document.querySelector("details.confirm[open]")`),
		until(`document.body.innerText.includes('seen in a refresh')`))

	live.write("third line\n", true)
	f.mu.Lock()
	code := 0
	attempt.State, attempt.ExitCode, attempt.OutputBytes = dts.AttemptSuccess, &code, 42
	f.tasks[0].Status, f.tasks[0].CompletedAt = dts.Success, time.Now()
	f.outputs[running.ID] = &dts.Output{Head: live.data, Total: int64(len(live.data))}
	delete(f.tails, running.ID)
	f.mu.Unlock()
	step("the end",
		until(`document.querySelector('#state').innerText === 'success'`),
		until(`!document.querySelector('#output pre[data-follow]') && document.querySelector('#output pre').textContent.endsWith('third line\n')`))

	step("delete it",
		click("#do-delete"),
		click("#yes-delete"),
		until(`location.pathname === '/ui/' && document.body.innerText.includes('Deleted.')`))

	// Trouble on the server is told, and forgotten when it is over.
	fail := func(err error) {
		f.mu.Lock()
		f.storeErr = err
		f.mu.Unlock()
	}
	fail(dts.Errorf(dts.ErrUnavailable, "try again later"))
	step("trouble", visible("#offline"), until(`document.body.innerText.includes('nightly')`))
	fail(nil)
	step("trouble over", gone("#offline"))

	// When the session ends elsewhere, the next refresh leads to the sign-in page.
	f.EndSession(ctx, session)
	step("session over", visible("#token"))
}

// A file is sent as it is, and what is wrong with one is told beside it.
func TestCalendarInBrowser(t *testing.T) {
	path := findBrowser(t)
	f := newFake(time.Now)
	base := serve(t, f)
	ctx := browser(t, path)
	step := func(name string, actions ...action0) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			page, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
			t.Fatalf("%s: %v\n%s", name, err, page)
		}
	}
	file := filepath.Join(t.TempDir(), "closed.ics")
	year := strconv.Itoa(time.Now().Year() + 1)
	text := strings.ReplaceAll(closedICS, "20260406", year+"0406")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	step("sign in", chromedp.Navigate(base), visible("#token"), typed("#token", goodToken+"\r"), visible("#count-running"))
	step("add a calendar",
		click(`a[href="/ui/calendars"]`), visible("#add-first"), click("#add-first"), visible("#name"),
		typed("#name", "closed"),
		chromedp.SetUploadFiles(chromedp.CSS("#ics"), []string{file}),
		click("#save"),
		until(`location.pathname === '/ui/calendars/closed' && document.body.innerText.includes('Works outing')`))
	f.change(func() {
		if len(f.calendars) != 1 || f.calendars[0].ICS != text {
			t.Errorf("the file arrived changed: %+v", f.calendars)
		}
	})
	step("a blackout in its days",
		click(`a[href="/ui/blackouts"]`), visible("#name"), gone("#calendar"),
		click(`input[value="calendar"]`), visible("#calendar"), gone("#start"),
		typed("#name", "Works outing"),
		chromedp.SetValue(chromedp.CSS("#calendar"), "closed"),
		click("#save"),
		until(`document.body.innerText.includes('Added. No task starts in it.') && document.querySelector('.blackouts').innerText.includes('closed')`))
	step("delete it",
		click(".blackouts summary"), visible(".blackouts details[open] button"), click(".blackouts details[open] button"),
		until(`document.body.innerText.includes('The blackout is deleted.') && !document.querySelector('.blackouts')`))
}

// Whatever is done to many asks first, and says what it did; what is asked is not refreshed away.
func TestDeadLettersAndQueuesInBrowser(t *testing.T) {
	path := findBrowser(t)
	f := newFake(time.Now)
	f.queueList = []*dts.Queue{{Name: "mail", Rate: 10, PeriodSeconds: 1}}
	f.add(failed("mail", "welcome", "exit code 1"))
	f.add(failed("mail", "digest", "exit code 2"))
	f.add(failed("reports", "monthly", "exit code 2"))
	base := serve(t, f)
	ctx := browser(t, path)
	step := func(name string, actions ...action0) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			page, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
			t.Fatalf("%s: %v\n%s", name, err, page)
		}
	}
	rows := func(n int) action0 {
		return until(fmt.Sprintf(`location.pathname === '/ui/dead' && document.querySelectorAll('.dead tbody tr').length === %d`, n))
	}
	step("sign in", chromedp.Navigate(base), visible("#token"), typed("#token", goodToken+"\r"), visible("#count-running"))
	step("those of a queue", click(`a[href="/ui/dead"]`), rows(3), typed("#queue", "mail"), click("#filter"), rows(2))
	step("ask, and go back", click("#requeue"), until(`document.querySelector('h1').innerText === 'Requeue 2 dead letters?'`), click("#back"), rows(2))
	step("requeue them", click("#requeue"), visible("#yes"), click("#yes"),
		until(`location.search.includes('queue=mail') && document.body.innerText.includes('Requeued 2 tasks.') && !document.querySelector('.dead tbody')`))
	step("what is left", click("#all"), rows(1))
	step("discard it", click("#discard"), visible("#yes"), click("#yes"),
		until(`document.body.innerText.includes('There are none')`))
	f.change(func() {
		if len(f.tasks) != 2 || f.tasks[0].Status != dts.Pending || f.tasks[1].Status != dts.Pending {
			t.Errorf("%d tasks are left", len(f.tasks))
		}
	})

	step("pause a queue",
		click(`a[href="/ui/queues"]`), click("#pause-mail"), visible("#note-mail"), typed("#note-mail", "the relay is down"))
	step("a refresh is due",
		until(`window.due || document.getElementById('live').addEventListener('htmx:beforeRequest', () => { window.due = true; })`),
		until(`document.getElementById('note-mail').value === 'the relay is down'`))
	step("yes", click(".queues details[open] button"), visible("#resume-mail"),
		until(`document.querySelector('.queues .chip.paused') && document.querySelector('.queues').innerText.includes('the relay is down')`))
	step("resume it", click("#resume-mail"), visible("#pause-mail"), until(`!document.querySelector('.queues .chip.paused')`))
}

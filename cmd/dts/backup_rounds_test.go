package main_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// TestBackupRounds backs up a server under load again and again, restores each backup into a new directory and judges
// it: everything that was acknowledged before the backup began is in it, a server starts on it and recovers, and what
// dts promises holds of it. Fires while a backup is made are compared with fires of as long a time just before it.
//
// DTS_BACKUP_ROUNDS says how many backups. See docs/decisions/backup.md.
func TestBackupRounds(t *testing.T) {
	rounds := 1
	if v := os.Getenv("DTS_BACKUP_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("DTS_BACKUP_ROUNDS is %q; give a number of at least 1", v)
		}
		rounds = n
	}
	bin := buildDTS(t)
	fires := &backupFires{}
	begun := time.Now()
	for done := 0; done < rounds && !t.Failed(); {
		n := min(rounds-done, backupEpoch)
		t.Run(fmt.Sprintf("from-%d", done+1), func(t *testing.T) {
			b := newBackupRounds(t, bin, fires)
			for r := range n {
				if b.round(r, r == n-1 || r%10 == 4); t.Failed() {
					return
				}
			}
			b.end()
		})
		done += n
	}
	t.Logf("%d rounds in %.0f s", rounds, time.Since(begun).Seconds())
	fires.judge(t)
}

const (
	backupEpoch   = 20                     // backups of one server: a broken promise is found near its cause
	backupBallast = 20_000                 // tasks that are in the database from the beginning
	backupFlood   = 40                     // tasks in a bulk request, by
	backupFloods  = 2                      // clients, each
	backupPace    = 150 * time.Millisecond // so often
	notLate       = 50 * time.Millisecond  // what no backup may delay a fire by
)

// backupRounds is one server under load, and what is known of it.
type backupRounds struct {
	judge
	server *testServer
	bin    string
	proxy  string // of the target
	stop   func() // ends the load
	fires  *backupFires
	spans  []backupSpan
	took   time.Duration // the last backup
}

// backupSpan is a time in which fires are looked at.
type backupSpan struct {
	from, to time.Time
	way      int // in which a backup was made meanwhile, of backupWays
}

// backupWays are the ways in which a round makes its backup.
var backupWays = [...]string{"none", "dts backup", "a task", "dts backup, after one that was killed"}

func newBackupRounds(t *testing.T, bin string, fires *backupFires) *backupRounds {
	b := &backupRounds{
		judge: judge{t: t, target: newTarget(t, 1), runs: newRunLog(t), broken: map[string]int{}, counts: map[string]int{}},
		bin:   bin, fires: fires, took: 400 * time.Millisecond,
	}
	// Requests go through a proxy, so that those of a restored server can be told from those of this one.
	b.proxy, b.target.URL = b.target.URL, "http://target.test"
	b.server = newServer(t, bin, filepath.Join(t.TempDir(), "data"))
	b.server.wrapper = []string{"env", "HTTP_PROXY=" + b.proxy}
	b.replay, b.disturbed, b.api = func() string { return "DTS_BACKUP_ROUNDS" }, func(_, _ time.Time) bool { return false }, b.server.client
	b.load = newLoad(t, b.server.client, b.target, b.runs)
	b.server.start()
	b.addBallast()
	for path, q := range map[string]api.RecurringRequest{
		"all": {IntervalSeconds: 1}, "latest": {Cron: "* * * * * *", MisfireAfterSeconds: 1},
		"none": {IntervalSeconds: 1, MisfireAfterSeconds: 1, CatchUpMode: dts.SkipMissed},
	} {
		q.Spec = httpSpec(b.target.URL + "/recurring/" + path)
		made, err := b.api().CreateRecurring(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		b.recurring = append(b.recurring, made.Item)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var floods sync.WaitGroup
	for i := range backupFloods {
		floods.Go(func() { b.load.flood(ctx, rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	b.stop = sync.OnceFunc(func() { cancel(); floods.Wait() })
	t.Cleanup(b.stop)
	time.Sleep(time.Second) // until the first of it fires
	return b
}

// addBallast gives the database some size.
func (b *backupRounds) addBallast() {
	list := make([]api.TaskRequest, backupBallast/2)
	for i := range list {
		list[i].Spec = httpSpec("http://target.test/" + strings.Repeat("x", 1000))
		list[i].Labels = map[string]string{"ballast": "1"}
		list[i].Delay = "1h"
	}
	for range 2 {
		if _, err := b.api().CreateTasks(b.t.Context(), list); err != nil {
			b.t.Fatal(err)
		}
	}
	if _, err := b.api().Bulk(b.t.Context(), dts.BulkChange{Verb: dts.BulkCancel, Filter: dts.TaskFilter{Labels: map[string]string{"ballast": "1"}}}); err != nil {
		b.t.Fatal(err)
	}
}

// flood adds tasks that are due soon, as fast as its pace, until ctx is done.
func (l *load) flood(ctx context.Context, rng *rand.Rand) {
	tick := time.NewTicker(backupPace)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		list := make([]api.TaskRequest, backupFlood)
		for i := range list {
			q := &list[i]
			q.Spec, q.Delay = httpSpec(l.url+"/moody"), api.Delay(fmt.Sprintf("%dms", 300+rng.IntN(1200)))
			q.Name, q.Retry = l.name(), dts.Retry{MaxAttempts: 4, Backoff: dts.Fixed, BaseDelayMS: 200}
			if rng.IntN(6) == 0 {
				q.Delivery, q.Retry = dts.AtMostOnce, dts.Retry{}
			}
			if rng.IntN(3) == 0 {
				q.IdempotencyKey = fmt.Sprintf("%d-%s", n, q.Name)
			}
		}
		a, err := l.api().CreateTasks(context.Background(), list)
		if err != nil {
			l.failed(err, list...)
			return
		}
		l.mu.Lock()
		for i, item := range a.Items {
			l.acked[item.TaskID] = acked{due: item.RunAt, once: list[i].Delivery == dts.AtMostOnce}
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// round makes a backup, restores it and looks at it. With full a server works on it until nothing is due.
func (b *backupRounds) round(n int, full bool) {
	t := b.t
	sleeper := b.startSleeper()
	quiet := time.Now()
	time.Sleep(b.took)
	b.spans = append(b.spans, backupSpan{quiet, time.Now(), 0})

	b.load.mu.Lock()
	before := maps.Clone(b.load.acked)
	b.load.mu.Unlock()
	from := time.Now()
	file := b.backUp(n)
	b.took = time.Since(from)
	b.spans = append(b.spans, backupSpan{from, time.Now(), 1 + n%3})
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the backup: %v, %v", info, err)
	}

	data := filepath.Join(t.TempDir(), fmt.Sprintf("restored-%d", n))
	defer os.RemoveAll(data)
	if out, err := b.dts("restore", file, "--data", data); err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	other := b.restored(data, before)
	other.checkStill()
	other.server.start()
	if err := syscall.Kill(sleeper, 0); err != nil {
		b.violated(i10, "the server on the restored copy has ended a command of the one that runs: %v", err)
	}
	other.askFor(before)
	if full {
		other.settle()
		if code := other.server.stop(15 * time.Second); code != 0 {
			b.violated(clean, "exit code %d after SIGTERM of the server on the restored copy", code)
		}
		db := other.server.database()
		other.target.got = append(b.deliveriesOf(db), other.target.got...)
		other.check(db)
	} else {
		other.server.kill()
	}
	for _, p := range other.server.processes() {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
	syscall.Kill(sleeper, syscall.SIGKILL)
	t.Logf("%3d  %3.0f ms  %d acknowledged before%s", n+1, float64(b.took.Microseconds())/1000, len(before), map[bool]string{true: ", judged in full"}[full])
}

// startSleeper runs a command that lasts, and returns its process.
func (b *backupRounds) startSleeper() (pid int) {
	t := b.t
	file := filepath.Join(t.TempDir(), "pid")
	q := api.TaskRequest{Spec: commandSpec("/bin/sh", "-c", `echo $$ >"$0"; exec sleep 300`, file)}
	q.Delivery = dts.AtMostOnce
	if _, err := b.api().CreateTask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "a command to run", func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 1
	})
	return pid
}

// backUp makes a backup in one of the ways that there are.
func (b *backupRounds) backUp(n int) (file string) {
	t := b.t
	file = filepath.Join(t.TempDir(), fmt.Sprintf("backup-%d.db", n))
	switch 1 + n%3 {
	case 1:
		if out, err := b.dts("backup", file, "--data", b.server.data); err != nil {
			t.Fatalf("backup: %v\n%s", err, out)
		}
	case 2: // as a task
		dir := t.TempDir()
		made, err := b.api().CreateTask(t.Context(), api.TaskRequest{Spec: dts.Spec{TargetType: dts.Backup, TargetConfig: []byte(`{"dir":"` + dir + `"}`)}})
		if err != nil {
			t.Fatal(err)
		}
		task := made.Item
		b.server.eventually(30*time.Second, "the task to make a backup", func() bool {
			task, err = b.api().Task(t.Context(), task.ID)
			return err == nil && task.Status.Terminal()
		})
		list, _ := filepath.Glob(dir + "/dts-*Z.db")
		if task.Status != dts.Success || len(list) != 1 {
			t.Fatalf("the task is %s, %s; there are %v", task.Status, task.LastError, list)
		}
		file = list[0]
	case 3: // after one that was killed
		cmd := b.command("backup", file, "--data", b.server.data)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(60 * time.Millisecond))))
		cmd.Process.Kill()
		cmd.Wait()
		whole := false
		if _, err := os.Stat(file); err == nil {
			whole = true // it was faster
		}
		b.server.eventually(10*time.Second, "the next backup to be made", func() bool {
			args := []string{"backup", file, "--data", b.server.data}
			if whole {
				args = append(args, "--force")
			}
			out, err := b.dts(args...)
			if err != nil && !strings.Contains(out, "another backup is being fetched") {
				t.Fatalf("backup: %v\n%s", err, out)
			}
			return err == nil
		})
	}
	if left, _ := filepath.Glob(filepath.Dir(file) + "/*.part"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	return file
}

func (b *backupRounds) command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.bin, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.server.home}
	return cmd
}

func (b *backupRounds) dts(args ...string) (string, error) {
	out, err := b.command(args...).CombinedOutput()
	return string(out), err
}

// restored is what is known of a restored copy: what was acknowledged before the backup began. Whatever was due since may
// run again there.
func (b *backupRounds) restored(data string, before map[string]acked) *backupRounds {
	t := b.t
	tg := newTarget(t, 2)
	proxy := tg.URL
	tg.URL = b.target.URL
	r := &backupRounds{judge: judge{t: t, target: tg, runs: newRunLog(t), broken: b.broken, counts: map[string]int{}}, bin: b.bin}
	r.server = newServer(t, b.bin, data)
	r.server.wrapper = []string{"env", "HTTP_PROXY=" + proxy}
	r.api, r.replay = r.server.client, b.replay
	r.disturbed = func(_, _ time.Time) bool { return true }
	start := time.Now()
	r.late = func(at time.Time) bool { return at.After(start) } // attempts from after the backup are made again, under the same number or a lower one
	r.load = newLoad(t, r.server.client, tg, r.runs)
	r.load.acked = before
	for _, k := range b.recurring {
		copied := *k
		r.recurring = append(r.recurring, &copied)
	}
	return r
}

// checkStill checks what can be said of the copy before a server works on it.
func (b *backupRounds) checkStill() {
	db := b.server.database()
	checkIntegrity(b.t, db)
	there := taskIDs(b.t, db)
	for id := range b.load.acked {
		if !there[id] {
			b.violated(i1, "task %s was acknowledged before the backup, and is not in it", id)
		}
	}
}

// askFor asks the server on the restored copy for some of what was acknowledged.
func (b *backupRounds) askFor(before map[string]acked) {
	n := 0
	for id := range before {
		if n++; n > 20 {
			return
		}
		if _, err := b.api().Task(b.t.Context(), id); err != nil {
			b.violated(i1, "task %s: %v", id, err)
		}
	}
}

// deliveriesOf are those requests to the target that are of tasks in a database.
func (b *backupRounds) deliveriesOf(db *sql.DB) (list []delivery) {
	there := taskIDs(b.t, db)
	for _, d := range b.target.deliveries() {
		if there[d.run.task] {
			list = append(list, d)
		}
	}
	return list
}

// end judges the server itself, which was not disturbed, and a backup of what it leaves when it is killed.
func (b *backupRounds) end() {
	t := b.t
	b.stop()
	for task, err := range b.api().AllTasks(t.Context(), dts.TaskFilter{Statuses: []dts.Status{dts.Running}, Limit: 1000}) {
		if err == nil && task.TargetType == dts.Command {
			_, err = b.api().DoTask(t.Context(), task.ID, dts.Cancel)
		}
		if err != nil && dts.CodeOf(err) != dts.ErrConflict {
			t.Fatal(err)
		}
	}
	b.settle()
	b.server.kill()
	file := filepath.Join(t.TempDir(), "killed.db")
	if out, err := b.dts("backup", file, "--data", b.server.data); err != nil {
		t.Fatalf("backup of what a killed server left: %v\n%s", err, out)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b.check(db)
	b.fires.add(t, db, b.spans)
}

func taskIDs(t *testing.T, db *sql.DB) map[string]bool {
	there := map[string]bool{}
	queryAll(t, db, `SELECT task_id FROM tasks`, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		there[id] = true
		return err
	})
	return there
}

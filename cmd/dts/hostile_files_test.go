package main_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// image is what the files of a data directory hold, by name.
type image map[string][]byte

func readImage(t *testing.T, dir string) image {
	t.Helper()
	m := image{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == "ballast" {
			continue
		}
		if m[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m image) write(t *testing.T, dir string) {
	t.Helper()
	err := os.Mkdir(dir, 0o700)
	for name, b := range m {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m image) clone() image {
	c := image{}
	for name, b := range m {
		c[name] = slices.Clone(b)
	}
	return c
}

// tasksOf reads every task through the API, as JSON by id.
func (s *testServer) tasksOf() (map[string]string, error) {
	m := map[string]string{}
	for task, err := range s.api.AllTasks(s.t.Context(), dts.TaskFilter{Limit: 500}) {
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(task)
		if err != nil {
			return nil, err
		}
		m[task.ID] = string(b)
	}
	return m, nil
}

// stored makes data with tasks that wait and tasks that have ended, and returns its files after a kill and
// after a clean stop, and what the API said.
func (h *hostile) stored(t *testing.T) (killed, clean image, tasks map[string]string) {
	t.Helper()
	s := newServer(t, h.bin, filepath.Join(t.TempDir(), "data"))
	tg := newTarget(t, h.seed)
	s.start()
	var later []api.TaskRequest
	for i := range 5 {
		var list []api.TaskRequest
		for j := range 500 {
			q := api.TaskRequest{Spec: httpSpec(fmt.Sprintf("%s/%d/%d", tg.URL, i, j)), Delay: "48h"}
			q.Name = fmt.Sprintf("task %d of %d", j, i)
			if j%3 == 0 {
				q.Delay = ""
			} else if i == 0 {
				later = append(later, q)
			}
			list = append(list, q)
		}
		if _, err := s.api.CreateTasks(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually(20*time.Second, "the tasks that are due to end", func() bool {
		n, err := s.api.Counts(t.Context())
		return err == nil && n.Running == 0 && n.Pending == 5*333
	})
	// More, until the log was copied to the database and holds something that was not.
	for more := 2; more > 0; {
		if frames, copied := logFrames(t, filepath.Join(s.data, "dts.db-shm")); copied == frames {
			more = 2
		} else if copied > 0 {
			more--
		}
		if _, err := s.api.CreateTasks(t.Context(), later); err != nil {
			t.Fatal(err)
		}
	}
	tasks, err := s.tasksOf()
	if err != nil {
		t.Fatal(err)
	}
	s.kill()
	killed = readImage(t, s.data)
	s.start()
	if code := s.stop(10 * time.Second); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	clean = readImage(t, s.data)
	if len(killed["dts.db-wal"]) < 1<<20 || len(clean["dts.db-wal"]) > 0 || len(tasks) < 2500 {
		t.Fatalf("%d bytes of log after the kill, %d after the stop, %d tasks", len(killed["dts.db-wal"]), len(clean["dts.db-wal"]), len(tasks))
	}
	return killed, clean, tasks
}

// logFrames reads from the shared memory how many frames the log has and how many of them the database has
// (https://sqlite.org/walformat.html#the_wal_index_file_format).
func logFrames(t *testing.T, path string) (all, copied uint32) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 100 {
		t.Fatalf("%d bytes of shared memory, %v", len(b), err)
	}
	return binary.NativeEndian.Uint32(b[16:]), binary.NativeEndian.Uint32(b[96:])
}

// damage breaks one file and says how.
func (m image) damage(rng *rand.Rand) (what string) {
	names := []string{"dts.db", "dts.db"}
	if len(m["dts.db-wal"]) > 0 {
		names = append(names, "dts.db-wal", "dts.db-wal", "dts.db-wal", "dts.db-shm")
	}
	name := names[rng.IntN(len(names))]
	b := m[name]
	switch rng.IntN(5) {
	case 0, 1:
		at, bit := rng.IntN(len(b)), rng.IntN(8)
		if rng.IntN(4) == 0 {
			at = rng.IntN(200)
		}
		b[at] ^= 1 << bit
		return fmt.Sprintf("bit %d of byte %d of %s flipped", bit, at, name)
	case 2:
		page := rng.IntN(len(b) / 4096)
		clear(b[page*4096 : (page+1)*4096])
		return fmt.Sprintf("page %d of %s zeroed", page, name)
	case 3:
		size := rng.IntN(len(b))
		m[name] = b[:size]
		return fmt.Sprintf("%s cut at %d of %d", name, size, len(b))
	default:
		if name == "dts.db" {
			m[name] = nil
			return name + " emptied"
		}
		delete(m, name)
		return name + " removed"
	}
}

// damagedFiles breaks the files of stopped servers. The next one must refuse to start and leave them alone, or
// show everything that was acknowledged, or, where a damaged page is met later, stop and say so.
//
// SQLite keeps no checksum of its pages: a bit that flips in a column without an index stays unseen. Only a bit of
// the database file may do that, and only to one row.
func (h *hostile) damagedFiles(t *testing.T) {
	killed, clean, tasks := h.stored(t)
	count := map[string]int{}
	for round := range h.rounds {
		rng := rand.New(rand.NewPCG(h.seed, uint64(round)))
		from, how := killed, "killed"
		if rng.IntN(3) == 0 {
			from, how = clean, "stopped"
		}
		m := from.clone()
		what := fmt.Sprintf("round %d, %s: %s", round, how, m.damage(rng))
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			verdict := h.startDamaged(t, what, m, tasks)
			count[verdict]++
			t.Logf("%s: %s", what, verdict)
		})
	}
	t.Logf("DTS_CRASH_SEED=%d: %v", h.seed, count)
}

// startDamaged starts a server on damaged files and judges what it does.
func (h *hostile) startDamaged(t *testing.T, what string, m image, tasks map[string]string) (verdict string) {
	s := newServer(t, h.bin, filepath.Join(t.TempDir(), "data"))
	m.write(t, s.data)
	s.launch()
	s.eventually(20*time.Second, "the server to be ready or to end", func() bool {
		select {
		case <-s.exited:
			return true
		default:
		}
		r, err := s.api.Ready(t.Context())
		return err == nil && (r.Ready || strings.Contains(s.log(), "is damaged"))
	})
	log := s.log()
	select {
	case <-s.exited:
		if code := s.state.ExitCode(); code == 0 || code == 2 {
			h.errorf(t, "%s: exit code %d", what, code)
		}
		for _, want := range []string{filepath.Join(s.data, "dts.db"), "damaged", "restore a backup"} {
			if !strings.Contains(log, want) {
				h.errorf(t, "%s: the refusal does not say %q:\n%s", what, want, log)
			}
		}
		for _, name := range []string{"dts.db", "dts.db-wal"} {
			b, err := os.ReadFile(filepath.Join(s.data, name))
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			if err != nil || !bytes.Equal(b, m[name]) && !(name == "dts.db-wal" && len(m[name]) == 0) {
				h.errorf(t, "%s: %s was changed by a server that refused to start: %d bytes, had %d; %v", what, name, len(b), len(m[name]), err)
			}
		}
		return "refused"
	default:
	}
	got, err := s.tasksOf()
	if err != nil && strings.Contains(what, "of dts.db flipped") && strings.Contains(s.log(), "request failed") && !strings.Contains(s.log(), "is damaged") {
		return "found later" // the text of a task is no JSON any more: an error, and not of SQLite
	}
	if err != nil || strings.Contains(s.log(), "is damaged") {
		s.eventually(5*time.Second, "/ready and the log to say so: "+what, func() bool {
			r, err := s.api.Ready(t.Context())
			return err == nil && !r.Ready && strings.Contains(s.log(), "is damaged")
		})
		return "found later"
	}
	missing, changed := 0, 0
	for id, want := range tasks {
		switch text, ok := got[id]; {
		case !ok:
			missing++
		case text != want:
			changed++
		}
	}
	switch {
	case missing+changed == 1 && strings.Contains(what, "of dts.db flipped"):
		return "unseen"
	case missing > 0 || len(got) != len(tasks):
		h.errorf(t, "%s: it goes on, and %d of %d tasks are missing, %d are there", what, missing, len(tasks), len(got))
		return "lost"
	case changed > 0:
		h.errorf(t, "%s: it goes on, and %d tasks are not as they were", what, changed)
		return "changed"
	}
	s.kill()
	checkIntegrity(t, s.database())
	return "no harm"
}

// emptyDatabase starts on a database file that something has emptied: that is not a new server.
func (h *hostile) emptyDatabase(t *testing.T) {
	s := newServer(t, h.bin, filepath.Join(t.TempDir(), "data"))
	s.start()
	s.create(api.TaskRequest{Spec: httpSpec("http://127.0.0.1:1/"), Delay: "1h"})
	if code := s.stop(10 * time.Second); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if err := os.Truncate(filepath.Join(s.data, "dts.db"), 0); err != nil {
		t.Fatal(err)
	}
	s.launch()
	if code := s.exitCode(10 * time.Second); code != 1 || !strings.Contains(s.log(), "the file is empty") || !strings.Contains(s.log(), "backup") {
		t.Errorf("exit code %d for an empty database:\n%s", code, s.log())
	}
	if info, err := os.Stat(filepath.Join(s.data, "dts.db")); err != nil || info.Size() != 0 {
		t.Errorf("the empty file was changed: %v, %v", info, err)
	}
}

// damageFoundLater damages a database that is too large to be checked before the server is ready. What a read or the
// check in the background finds stops all firing at once.
func (h *hostile) damageFoundLater(t *testing.T) {
	s := newServer(t, h.bin, filepath.Join(t.TempDir(), "data"))
	tg := newTarget(t, h.seed)
	s.start()
	body := strings.Repeat("0123456789abcdef", 60<<10)
	for range 3 {
		var list []api.TaskRequest
		for range 25 {
			b, _ := json.Marshal(dts.HTTPTarget{URL: tg.URL, Body: body})
			list = append(list, api.TaskRequest{Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: b}, Delay: "48h"})
		}
		if _, err := s.api.CreateTasks(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.stop(10 * time.Second); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	path := filepath.Join(s.data, "dts.db")
	was := swapPage(t, path, make([]byte, 4096)) // after a clean stop, only a read can find it
	s.start()
	if _, err := s.tasksOf(); err == nil {
		t.Error("a read of a damaged page succeeded")
	}
	s.awaitDamage()
	s.kill()
	swapPage(t, path, was)

	s.start() // a kill now leaves the mark of an unclean stop, and a small log
	var list []api.TaskRequest
	for i := range 400 {
		list = append(list, api.TaskRequest{Spec: httpSpec(tg.URL + "/soon"), Delay: api.Delay(fmt.Sprintf("%dms", 1500+i*10))})
	}
	if _, err := s.api.CreateTasks(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	s.kill()
	if info, err := os.Stat(path); err != nil || info.Size() < 64<<20 {
		t.Fatalf("the database is too small for this test: %v, %v", info, err)
	}
	swapPage(t, path, make([]byte, 4096))
	if err := os.Truncate(s.logPath, 0); err != nil {
		t.Fatal(err)
	}
	s.launch()
	if s.refused() {
		return // the check was quicker than the first write
	}
	found := s.awaitDamage()
	if _, err := s.api.CreateTask(t.Context(), list[0]); err == nil {
		t.Error("a write was taken")
	}
	if _, err := s.api.Counts(t.Context()); err != nil {
		t.Errorf("a read: %v", err)
	}
	started := len(tg.deliveries())
	time.Sleep(time.Until(found.Add(3 * time.Second))) // more tasks come due
	if n := len(tg.deliveries()); n > started {
		t.Errorf("%d attempts started after the damage was found", n-started)
	}
}

// swapPage replaces the page in the middle of a database and returns what it held.
func swapPage(t *testing.T, path string, page []byte) (was []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const at = 8000 * 4096 // in the middle of a task's text
	was = make([]byte, 4096)
	if _, err := f.ReadAt(was, at); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(page, at); err != nil {
		t.Fatal(err)
	}
	return was
}

// refused waits until the server has found the damage and is up, or has ended because of it, and reports whether it has.
func (s *testServer) refused() (ended bool) {
	s.t.Helper()
	s.eventually(10*time.Second, "the damage to be found", func() bool {
		select {
		case <-s.exited:
			ended = true
			return true
		default:
		}
		_, err := s.api.Ready(s.t.Context())
		return err == nil && strings.Contains(s.log(), "the database is damaged")
	})
	if ended && !regexp.MustCompile(`(?m)^dts: start the scheduler: (register|take shards|give back slots): the database is unavailable`).MatchString(s.log()) {
		s.t.Error("it ended for another reason")
	}
	return ended
}

// awaitDamage waits until the server has found damage, and until /ready says so, and returns when it was found.
func (s *testServer) awaitDamage() time.Time {
	s.t.Helper()
	s.eventually(10*time.Second, "the damage to be found", func() bool { return strings.Contains(s.log(), "the database is damaged") })
	found := time.Now()
	s.eventually(3*time.Second, "/ready to say so", func() bool {
		r, err := s.api.Ready(s.t.Context())
		return err == nil && !r.Ready && strings.Contains(fmt.Sprint(r.Reasons), "damaged")
	})
	return found
}

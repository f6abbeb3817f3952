package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/sched"
	"dts/store/sqlite"
)

// retentionLate is from when on retention counts as one that does not keep up: it looks once a minute.
const retentionLate = 30 * time.Minute

// checkServer asks the server how it is.
func (d *doctor) checkServer(ctx context.Context) {
	r := d.report
	if d.dir != "" {
		d.held, _ = sqlite.Held(d.dir) // where it may not be known, checkDirectory says so
	}
	s, err := d.l.Status(ctx)
	switch {
	case noServer(err) && d.dir == "":
		r.problem("server", "start it, or correct the address", "%s", err)
		return
	case noServer(err) && d.held:
		r.problem("server", fmt.Sprintf("see what process %s does, and the server's log", lockOwner(d.dir)), "a process has the data directory, but nothing listens at the socket: it is starting, stopping, or no server")
		return
	case noServer(err):
		d.stopped()
		return
	case errors.Is(err, fs.ErrPermission):
		text, _ := verdict(err)
		r.problem("server", "run it as that user, or as root", "%s", text)
		return
	case err != nil:
		text, _ := verdict(hangs(err))
		advice := "see its log"
		switch code := dts.CodeOf(err); {
		case silent(err):
			advice += "; a server that hangs is ended with SIGQUIT, which logs what it was doing, and started again"
		case code == dts.ErrUnauthorized || code == dts.ErrForbidden:
			advice = "use an admin's token: the data directory's admin.token holds one, and dts token makes others"
		}
		r.problem("server", advice, "%s", text)
		return
	}
	d.status = s
	for _, why := range s.NotReady {
		r.problem("server", "nothing is fired, or not all; see its log and docs/operations.md", "not ready: %s", oneLine(why))
	}
	if s.Ready {
		r.ok("server", "it is ready, and up for %s", age(s.Now.Sub(s.StartedAt)))
	}
	if own := thisBuild().Version; s.Version != own {
		r.warn("version", "start the server again to run what is installed, or use the same version here", "the server is dts %s, and this program is %s", clean(s.Version), own)
	} else {
		r.ok("version", "dts %s, as this program", own)
	}
	if lag := time.Duration(s.LagUS) * time.Microsecond; lag > time.Minute {
		r.warn("lag", "see what takes the slots: dts status --watch; more slots: --max-http, --max-commands", "the oldest due task waits for %s", age(lag))
	}
	d.checkNodes(s)
}

// stopped says that no server runs, and how the last one has ended.
func (d *doctor) stopped() {
	const start = "start it with: dts serve, or systemctl start dts"
	path := filepath.Join(d.dir, databaseFile)
	if !exists(path) && !exists(path+restoreSuffix) && !exists(filepath.Join(d.dir, rqliteFile)) {
		d.report.problem("server", start, "no server runs, and none has run in this data directory")
		return
	}
	how := ""
	if exists(path + ".running") {
		how = "; the last one did not stop in order: it crashed, was killed, or the machine lost power. The next start checks the database"
	}
	d.report.problem("server", start, "no server runs, so nothing fires%s", how)
}

// lockOwner is the process that has a data directory, as its lock says.
func lockOwner(dir string) string {
	b, err := readFile(filepath.Join(dir, sqlite.LockFile))
	if pid, bad := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && bad == nil {
		return strconv.Itoa(pid)
	}
	return "that has it"
}

// checkNodes looks at the other servers of a cluster.
func (d *doctor) checkNodes(s *dts.SchedulerStatus) {
	var dead, other []string
	for _, n := range s.Nodes {
		switch {
		case n.State == string(dts.NodeDead):
			dead = append(dead, fmt.Sprintf("%s at %s, last seen %s ago", shortID(clean(n.ID)), clean(n.Address), age(seconds(n.SeenSecondsAgo))))
		case dts.NodeState(n.State).Runs() && n.Version != s.Version:
			other = append(other, fmt.Sprintf("%s at %s: %s", shortID(clean(n.ID)), clean(n.Address), clean(n.Version)))
		}
	}
	d.report.list("cluster", levelWarning, dead, "start them again; one that is gone for good is forgotten in time", "servers do not beat any more; the others do their work")
	d.report.list("cluster", levelWarning, other, "finish the upgrade", "servers run another version than %s", clean(s.Version))
	if len(s.Nodes) > 0 && len(dead)+len(other) == 0 {
		d.report.ok("cluster", "%s share the schedule", count(len(s.Nodes), "server"))
	}
}

// checkClock looks at the clock of the server, or of this machine where none runs.
func (d *doctor) checkClock() {
	r := d.report
	const sync = "let chrony, systemd-timesyncd or another NTP client keep it right"
	if s := d.status; s != nil {
		c := s.Clock
		if c == nil {
			c = &dts.ClockStatus{}
		}
		for _, alert := range c.Alerts {
			r.problem("clock", sync, "%s", oneLine(alert))
		}
		switch {
		case len(c.Alerts) > 0:
		case c.Synchronised != nil && !*c.Synchronised:
			r.warn("clock", sync, "nothing keeps the server's clock right, says its kernel: tasks run at wrong times as it drifts")
		case c.Synchronised != nil:
			text := "it is synchronised, says the kernel"
			if c.MaxSkewMS != 0 {
				text += "; another server's differs by " + unsigned(time.Duration(c.MaxSkewMS)*time.Millisecond)
			}
			r.ok("clock", "%s", text)
		default:
			r.ok("clock", "it is believed; the kernel does not tell whether it is synchronised")
		}
		return
	}
	if d.dir == "" {
		return
	}
	now := d.app.now()
	if floor := clockFloor(); now.Before(floor) {
		r.problem("clock", sync, "it says %s, which is before this program was made: the server would not fire", now.UTC().Format(time.RFC3339))
	} else if k, known := sched.ReadKernelClock(); known && !k.Synchronised {
		r.warn("clock", sync, "nothing keeps this machine's clock right, says its kernel: tasks run at wrong times as it drifts")
	} else if known {
		r.ok("clock", "it is synchronised, says the kernel")
	}
}

// checkRetention looks whether what is not to be kept goes.
func (d *doctor) checkRetention() {
	s := d.status
	if len(s.Shards) == 0 || s.Shards[0].From != 0 || s.Now.Sub(s.StartedAt) < retentionLate {
		return // another server sees to it, or this one has just begun to
	}
	const advice = "keep less (dts retention set), or see what the disk is busy with; the log tells of errors"
	if late := s.Now.Sub(s.RetainedAt); s.RetainedAt.IsZero() {
		d.report.warn("retention", advice, "it has not been through since the start %s ago: more tasks end than it deletes", age(s.Now.Sub(s.StartedAt)))
	} else if late > retentionLate {
		d.report.warn("retention", advice, "it does not keep up: all that is not to be kept was last gone %s ago", age(late))
	} else {
		d.report.ok("retention", "it keeps up")
	}
}

// checkLimits looks at the limits of the server's process, on this machine.
func (d *doctor) checkLimits() {
	if d.status == nil || d.dir == "" {
		return
	}
	pid, err := strconv.Atoi(lockOwner(d.dir))
	if err != nil {
		return
	}
	l, err := limitsOf(pid)
	if err != nil {
		if os.IsPermission(err) {
			d.report.ok("limits", "not looked at: only root and the server's user may")
		}
		return
	}
	var http, commands uint64
	for _, p := range d.status.Pools {
		if p.TargetType == dts.Command {
			commands = uint64(p.Slots)
		} else {
			http = uint64(p.Slots)
		}
	}
	const margin = 256 // connections of clients and of the page, files of the database
	const advice = "raise it: LimitNOFILE= and LimitNPROC= of the service, or ulimit; or lower --max-http and --max-commands"
	if need := http + 4*commands + margin; l.files > 0 && l.files < need {
		d.report.warn("limits", advice, "the server may open %d files, and may need %d when all its slots are in use", l.files, need)
	} else if l.files > 0 && l.open > l.files/10*8 {
		d.report.problem("limits", advice, "the server has %d of %d files open", l.open, l.files)
	} else if need := 2*commands + 64; l.processes > 0 && !l.root && l.processes < need {
		d.report.warn("limits", advice, "the server's user may have %d processes and threads, and may need %d when all slots for commands are in use", l.processes, need)
	} else if l.files > 0 {
		d.report.ok("limits", "it may open %d files and has %d open", l.files, l.open)
	}
}

// processLimits are limits of a process; 0: not known, or none.
type processLimits struct {
	files, open uint64
	processes   uint64
	root        bool // to whom the limit of processes does not apply
}

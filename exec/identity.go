package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"dts"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// currentUser is the user that the server runs as. One that has no entry in the user database, as happens in
// containers, goes by its number.
func currentUser() *user.User {
	if u, err := user.Current(); err == nil {
		return u
	}
	uid := strconv.Itoa(os.Getuid())
	return &user.User{Uid: uid, Gid: strconv.Itoa(os.Getgid()), Username: uid, HomeDir: os.Getenv("HOME")}
}

// identity returns the user to run as, and the credential to switch to, nil where none is needed.
func (r *Runner) identity(name string) (*user.User, *syscall.Credential, error) {
	if name == "" || name == r.self.Username {
		return r.self, nil, nil
	}
	who, err := user.Lookup(name)
	if err != nil {
		if _, ok := errors.AsType[user.UnknownUserError](err); ok {
			return nil, nil, fmt.Errorf("there is no user %q on this machine", clip(name))
		}
		return nil, nil, fmt.Errorf("look up the user %q: %w", clip(name), err)
	}
	if os.Geteuid() != 0 {
		return nil, nil, fmt.Errorf("cannot run as %s: the server runs as %s, and only one that runs as root can switch users", who.Username, r.self.Username)
	}
	groups, err := who.GroupIds()
	if err != nil {
		return nil, nil, fmt.Errorf("look up the groups of %s: %w", who.Username, err)
	}
	if runtime.GOOS == "darwin" && len(groups) > 16 {
		groups = groups[:16] // NGROUPS_MAX of setgroups there
	}
	c := &syscall.Credential{}
	if c.Uid, err = parseID(who.Uid); err != nil {
		return nil, nil, err
	}
	if c.Gid, err = parseID(who.Gid); err != nil {
		return nil, nil, err
	}
	for _, g := range groups {
		id, err := parseID(g)
		if err != nil {
			return nil, nil, err
		}
		c.Groups = append(c.Groups, id)
	}
	return who, c, nil
}

func parseID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the user database holds %q where a number should be", clip(s))
	}
	return uint32(n), nil
}

// environment returns what a command sees: little of the server's own, or what Options say, then the task's, then what
// describes the run. Of two equal names os/exec takes the last.
func (r *Runner) environment(t *dts.CommandTarget, job *dts.Job, who *user.User, shell string) []string {
	env := slices.Clone(r.o.Environ)
	if env == nil || who != r.self {
		home := who.HomeDir
		if home == "" {
			home = "/"
		}
		env = append(env,
			"PATH="+getenv("PATH", defaultPath),
			"HOME="+home,
			"USER="+who.Username,
			"LOGNAME="+who.Username,
			"SHELL="+shell,
			"LANG="+getenv("LANG", "C.UTF-8"),
		)
	}
	first := len(env)
	for name, value := range t.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env[first:])
	env = append(env,
		"DTS_TASK_ID="+job.Task.ID,
		"DTS_TASK_NAME="+job.Task.Name,
		"DTS_ATTEMPT="+strconv.Itoa(job.Number),
		"DTS_SCHEDULED_AT="+job.Task.ScheduledAt.UTC().Format(microTime),
		markName+"="+mark(r.o.DataDirID, job),
	)
	if job.Task.RecurringTaskID != "" {
		env = append(env, "DTS_RECURRING_TASK_ID="+job.Task.RecurringTaskID)
	}
	if job.Task.WorkflowID != "" {
		env = append(env, "DTS_WORKFLOW_ID="+job.Task.WorkflowID)
	}
	env = append(env, inputVariables(job.Inputs)...)
	if r.o.NodeID != "" {
		env = append(env, "DTS_NODE="+r.o.NodeID)
	}
	return env
}

func getenv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// directory returns where the command starts: dir, or home, or / for a user without a home.
func directory(dir, home string) (string, error) {
	if dir == "" {
		if info, err := os.Stat(home); err == nil && info.IsDir() {
			return home, nil
		}
		return "/", nil
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the directory %s does not exist", clip(dir))
	case err == nil && !info.IsDir():
		return "", fmt.Errorf("%s is not a directory", clip(dir))
	}
	return dir, nil // what else is wrong shows at the start, as the right user
}

// lookPath finds a program in the PATH of the command's own environment. A name with a slash is taken as it
// is; relative ones start from the command's directory.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // "." and "" in PATH would run what happens to lie about
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no program %s in PATH, which is %s", clip(name), clip(path))
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// checkConfigFile looks at who may read and write the configuration file.
func (d *doctor) checkConfigFile(path string) {
	if path == "" {
		var err error
		if path, err = defaultConfig(); err != nil {
			return
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return // there need not be one, and what is wrong with one that is named was said
	}
	secrets := d.secretSettings()
	mode := info.Mode().Perm()
	switch {
	case !info.Mode().IsRegular():
		return // /dev/null is none
	case mode&0o022 != 0:
		d.report.problem("settings", "run chmod go-w "+words([]string{path}), "%s can be changed by others (mode %04o): they decide what the server does", path, mode)
	case uidOf(info) != 0 && os.Geteuid() == 0:
		d.report.problem("settings", "run chown root "+words([]string{path}), "%s belongs to user %d, who decides what the server does that runs as root", path, uidOf(info))
	case mode&0o044 != 0 && len(secrets) > 0:
		d.report.problem("settings", "run chmod go-r "+words([]string{path}), "%s can be read by others (mode %04o), and holds %s", path, mode, strings.Join(secrets, " and "))
	default:
		d.report.ok("settings", "%s", path)
	}
}

// checkTokenFile looks at who may read the file that a command line, a variable or the configuration names as that of a token.
func (d *doctor) checkTokenFile(path string) {
	if path == "" && d.conf.TokenFile != nil {
		path = *d.conf.TokenFile
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return // there is none, or whoever needs it has said so
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		d.report.problem("tokens", "run chmod 0600 "+words([]string{path})+", and replace the token if others may have seen it", "%s can be read by others (mode %04o)", path, mode)
	} else {
		d.report.ok("tokens", "%s is for its user alone (mode %04o)", path, mode)
	}
}

// secretSettings names the settings of the configuration file that are secrets.
func (d *doctor) secretSettings() (list []string) {
	if d.conf.Token != nil && *d.conf.Token != "" {
		list = append(list, "a token")
	}
	if d.conf.RQLite != nil && strings.Contains(*d.conf.RQLite, "@") {
		list = append(list, "a password of rqlite")
	}
	if d.conf.HeartbeatURL != nil && *d.conf.HeartbeatURL != "" {
		list = append(list, "the heartbeat's URL")
	}
	return list
}

// checkDirectory looks at who may read the data directory and what is in it, and reports whether it can be looked into.
func (d *doctor) checkDirectory() bool {
	r := d.report
	info, err := os.Stat(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false // stopped said that nothing has run there
	}
	if err == nil {
		_, err = os.ReadDir(d.dir)
	}
	if errors.Is(err, fs.ErrPermission) {
		r.problem("permissions", "run it as the server's user, or root", "%s cannot be looked into by this user", d.dir)
		return false
	}
	if err != nil {
		r.problem("permissions", "name the data directory with --data", "%s", err)
		return false
	}
	bad := false
	if err := checkDataDir(d.dir, true); err != nil {
		r.problem("permissions", "until then the server does not start", "%s", err)
		bad = true
	}
	owner := uidOf(info)
	var open, foreign []string
	entries, _ := os.ReadDir(d.dir) // it could be read just now
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // gone since, or a directory or socket
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			open = append(open, fmt.Sprintf("%s (mode %04o)", e.Name(), mode))
		}
		if uidOf(info) != owner {
			foreign = append(foreign, fmt.Sprintf("%s (user %d)", e.Name(), uidOf(info)))
		}
	}
	l := levelWarning // nobody else gets into the directory
	if info.Mode().Perm()&0o050 != 0 {
		l = levelProblem
	}
	r.list("permissions", l, open, "run chmod 0600 for each; if others may have read admin.token, remove it and start the server, which makes a new one",
		"files in the data directory are readable by more than the server's user")
	r.list("permissions", levelProblem, foreign, fmt.Sprintf("run chown -R %d %s", owner, words([]string{d.dir})), "files belong to another user than the data directory, so that the server may not be able to use them")
	if info, err := os.Stat(d.socket); err == nil {
		if mode := info.Mode().Perm(); mode&0o007 != 0 {
			r.problem("permissions", "start the server again: it sets the mode", "the socket %s is open to every user (mode %04o)", d.socket, mode)
			bad = true
		}
	}
	if !bad && len(open)+len(foreign) == 0 {
		who := "for its user alone"
		if info.Mode().Perm()&0o050 != 0 {
			who = "shared with its group"
		}
		r.ok("permissions", "the data directory is %s (mode %04o)", who, info.Mode().Perm())
	}
	return true
}

// uidOf is the user that a file belongs to.
func uidOf(info fs.FileInfo) uint32 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid
	}
	return uint32(os.Geteuid())
}

// sizeOf is the size of a file, in bytes; 0 where there is none. It does not open it.
func sizeOf(dir, name string) int64 {
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	return info.Size()
}

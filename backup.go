package dts

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// Backup is the target type of a copy of the whole database, which the server makes itself.
const Backup TargetType = "BACKUP"

// BackupTarget is the target_config of BACKUP: where the copies go, and how many of them are kept. Only copies that
// the same recurring task has made are ever removed, and only after a new one was made and checked. Neither Keep nor
// KeepDays: all are kept.
type BackupTarget struct {
	Dir      string `json:"dir" doc:"an absolute path on the server; it must exist"`
	Keep     int    `json:"keep,omitempty" doc:"of a recurring task: keep so many of its copies, the newest; 1 to 10,000"`
	KeepDays int    `json:"keep_days,omitempty" doc:"of a recurring task: remove its copies that are older than so many days, but never the newest; 1 to 36,500"`
}

// Limits of a BackupTarget.
const (
	maxBackupDir      = 4 << 10
	maxBackupKeep     = 10_000
	maxBackupKeepDays = 36_500
)

// Backup decodes the target_config of a BACKUP that Normalize has accepted.
func (s *Spec) Backup() (BackupTarget, error) {
	var t BackupTarget
	err := json.Unmarshal(s.TargetConfig, &t)
	return t, err
}

func checkBackup(f *fieldErrors, s *Spec) {
	var t BackupTarget
	if err := decodeStrict(s.TargetConfig, &t); err != nil {
		f.add("target_config", "is not a valid BACKUP: %s", err)
		return
	}
	switch {
	case t.Dir == "":
		f.add("target_config.dir", "is missing; give the directory that the copies go to")
	case len(t.Dir) > maxBackupDir:
		f.add("target_config.dir", "is longer than %d bytes", maxBackupDir)
	case strings.ContainsRune(t.Dir, 0):
		f.add("target_config.dir", "holds a NUL byte")
	case !filepath.IsAbs(t.Dir):
		f.add("target_config.dir", "must be an absolute path, not %q", clip(t.Dir))
	}
	if t.Keep < 0 || t.Keep > maxBackupKeep {
		f.add("target_config.keep", "is %d; use 1 to %d, or leave it out to keep all", t.Keep, maxBackupKeep)
	}
	if t.KeepDays < 0 || t.KeepDays > maxBackupKeepDays {
		f.add("target_config.keep_days", "is %d; use 1 to %d, or leave it out to keep them however old they are", t.KeepDays, maxBackupKeepDays)
	}
}

package dts_test

import (
	"strings"
	"testing"

	"dts"
)

// TestBackupTarget: what a BACKUP may say, and what is said of the rest.
func TestBackupTarget(t *testing.T) {
	for config, want := range map[string]string{
		`{"dir":"/backup"}`:                         "",
		`{"dir":"/backup","keep":7,"keep_days":30}`: "",
		`{}`:                  "target_config.dir: is missing",
		`{"dir":"backup"}`:    `target_config.dir: must be an absolute path, not "backup"`,
		`{"dir":"/a\u0000b"}`: "target_config.dir: holds a NUL byte",
		`{"dir":"/` + strings.Repeat("x", 5000) + `"}`: "target_config.dir: is longer than 4096 bytes",
		`{"dir":"/b","keep":-1}`:                       "target_config.keep: is -1; use 1 to 10000",
		`{"dir":"/b","keep":10001}`:                    "target_config.keep: is 10001",
		`{"dir":"/b","keep_days":36501}`:               "target_config.keep_days: is 36501; use 1 to 36500",
		`{"dir":"/b","kep":1}`:                         "target_config: is not a valid BACKUP",
		`{"dir":"/b","keep":"7"}`:                      `target_config: is not a valid BACKUP: field "keep" must be int, not string`,
	} {
		s := dts.Spec{TargetType: dts.Backup, TargetConfig: []byte(config)}
		err := s.Normalize()
		if want == "" && err == nil {
			if s.TimeoutSeconds != 3600 {
				t.Errorf("%s: the timeout is %g s", config, s.TimeoutSeconds)
			}
			continue
		}
		if err == nil || want == "" || !strings.Contains(dtsFields(err), want) {
			t.Errorf("%s: %s; want %q", config, dtsFields(err), want)
		}
	}
}

// dtsFields writes the fields of an error.
func dtsFields(err error) string {
	e, ok := err.(*dts.Error)
	if !ok {
		return "no error"
	}
	var list []string
	for _, f := range e.Fields {
		list = append(list, f.Field+": "+f.Message)
	}
	return strings.Join(list, " | ")
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"dts"
	"dts/store/rqlite"
)

// A pipe has said what it had to say: to read it again would wait for ever, or reset every setting.
func TestReloadFromPipe(t *testing.T) {
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := canReadAgain(fifo); err == nil || !strings.Contains(err.Error(), "fifo is a pipe") {
		t.Errorf("a pipe: %v", err)
	}
	for _, path := range []string{"", file, os.DevNull, filepath.Join(dir, "none")} {
		if err := canReadAgain(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSettings: every setting of the configuration file that is the server's is compared, and what is not live stays.
func TestSettings(t *testing.T) {
	known := map[string]bool{"server": true, "token": true, "token_file": true} // of the commands, not of the server
	for _, s := range serverSettings() {
		known[s.name] = true
		if s.live != (s.set != nil) {
			t.Errorf("%s: live %v", s.name, s.live)
		}
	}
	fields := reflect.TypeFor[config]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Tag.Get("toml"); !known[name] {
			t.Errorf("a change of the setting %s is not noticed", name)
		}
	}

	now := serverOptions{Listen: "a:1", DrainTimeout: 30 * time.Second, Retention: 720 * time.Hour, RetentionRows: 5,
		RQLite: rqlite.Options{URLs: []string{"http://user:secret@a:4001"}}, Heartbeat: heartbeatOptions{URL: "https://a/secret"}}
	wanted := now
	if changed, list := changeSettings(&now, &wanted); len(list) != 0 || !reflect.DeepEqual(changed, now) {
		t.Errorf("%+v", list)
	}
	wanted.Listen, wanted.DrainTimeout, wanted.Retention, wanted.LogLevel = "b:1", 90*time.Minute, 36*time.Hour, -4
	wanted.RQLite.URLs, wanted.Heartbeat.URL = []string{"http://user:other@a:4001"}, "https://a/other"
	changed, list := changeSettings(&now, &wanted)
	want := []dts.SettingChange{
		{Setting: "log_level", From: "info", To: "debug"},
		{Setting: "drain", From: "30s", To: "1h30m"},
		{Setting: "keep", From: "30d", To: "36h"},
		{Setting: "heartbeat_url", From: "https://a/…", To: "https://a/…"},
		{Setting: "listen", From: "a:1", To: "b:1", Restart: true},
		{Setting: "rqlite", From: "http://a:4001", To: "http://a:4001", Restart: true},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if changed.Listen != "a:1" || changed.Retention != 36*time.Hour || changed.Heartbeat.URL != "https://a/other" {
		t.Errorf("%+v", changed)
	}
	golden(t, "reload", func(a *app) {
		a.printChanges(list)
		a.printChanges(nil)
	})
}

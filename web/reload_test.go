package web_test

import (
	"strings"
	"testing"

	"dts"
	"dts/web"
)

// TestReload lets a server read its settings again: one that can, for an admin, and one that cannot.
func TestReload(t *testing.T) {
	var changes []dts.SettingChange
	var fault error
	s := start(t, func(o *web.Options) {
		o.API.Reload = func() ([]dts.SettingChange, error) { return changes, fault }
	})
	expect := func(status int, text string, header ...string) {
		t.Helper()
		if got, _, body := s.call(t, "POST", "/reload", "", header...); got != status || !strings.Contains(body, text) {
			t.Errorf("%d %s, want %d %s", got, body, status, text)
		}
	}
	changes = []dts.SettingChange{}
	expect(200, `{"changes":[]}`)
	changes = []dts.SettingChange{{Setting: "log_level", From: "info", To: "debug"}, {Setting: "listen", Restart: true}}
	expect(200, `{"setting":"listen","from":"","to":"","restart":true}`)
	fault = dts.Errorf(dts.ErrInvalid, "dts.toml:3: there is no setting x; nothing was changed")
	expect(422, "dts.toml:3: there is no setting x")
	expect(403, "only an admin", "Authorization", "Bearer other")
	expect(401, "this needs a token", "Authorization", "")

	s.SetAllowedHosts([]string{"new.example"})
	fault = nil
	expect(200, "changes", "Host", "new.example:8420")
	s.SetAllowedHosts(nil)
	expect(421, "", "Host", "new.example:8420")

	s = start(t, nil)
	expect(409, "no settings that it could read again")
}

package main

import (
	"os/exec"
	"testing"
	"time"
)

// TestPackageVersion: what is newer has a version that Debian takes for newer.
func TestPackageVersion(t *testing.T) {
	at := time.Date(2026, 11, 21, 20, 16, 27, 0, time.UTC)
	list := []struct{ described, commit, want string }{ // the oldest first
		{"", "", "0~20261121.201627"},
		{"", "2592d0d57e04", "0~20261121.201627.2592d0d57e04"},
		{"", "2592d0d57e04+dirty", "0~20261121.201627.2592d0d57e04+dirty"},
		{"v0.9.0", "", "0.9.0"},
		{"v1.0.0-rc1", "", "1.0.0~rc1"},
		{"v1.0.0-rc1-4-g2592d0d", "", "1.0.0~rc1+4.g2592d0d"},
		{"v1.0.0-rc2", "", "1.0.0~rc2"},
		{"v1.0.0", "", "1.0.0"},
		{"v1.0.0+dirty", "", "1.0.0+dirty"},
		{"v1.0.1", "", "1.0.1"},
		{"v1.0.1-9-g2592d0d", "", "1.0.1+9.g2592d0d"},
		{"v1.0.1-10-g2592d0d+dirty", "", "1.0.1+10.g2592d0d+dirty"},
	}
	before := "0~0"
	for _, x := range list {
		got := packageVersion(x.described, x.commit, at)
		if got != x.want {
			t.Errorf("%q, %q: the version is %s, want %s", x.described, x.commit, got, x.want)
		}
		if dpkg, err := exec.LookPath("dpkg"); err == nil {
			if exec.Command(dpkg, "--compare-versions", before, "lt", got).Run() != nil {
				t.Errorf("%s is not newer than %s", got, before)
			}
			before = got
		}
	}
}

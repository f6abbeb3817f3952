package web

import (
	"fmt"
	"net/netip"
	"os"
	"testing"
)

// TestPeerRule checks who may use the socket, with users that need not exist.
func TestPeerRule(t *testing.T) {
	const me, group, stranger = 54321, 54322, 54323
	for _, tt := range []struct {
		rule     peerRule
		uid, gid int
		ok       bool
	}{
		{peerRule{me, -1}, me, 1, true},
		{peerRule{me, -1}, 0, 0, true},
		{peerRule{me, -1}, stranger, group, false},
		{peerRule{me, group}, stranger, group, true},
		{peerRule{me, group}, stranger, 1, false},
	} {
		p, err := tt.rule.principal(tt.uid, tt.gid)
		if (err == nil) != tt.ok || p.Admin != tt.ok {
			t.Errorf("%+v: %+v %v", tt, p, err)
		}
	}
	p, _ := peerRule{me, -1}.principal(me, 1)
	if p.Name != fmt.Sprintf("%d (socket)", me) {
		t.Error(p.Name)
	}
}

func TestSocketGroup(t *testing.T) {
	t.Chdir(t.TempDir())
	l, err := listenUnix("s", true)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat("s")
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Error(info, err)
	}
	if gid, err := groupOf("s"); err != nil || newPeerRule("s", true).gid != gid {
		t.Error(gid, err)
	}
}

func TestNetwork(t *testing.T) {
	if network("[2001:db8:1:2:3::4]:5") != netip.MustParsePrefix("2001:db8:1:2::/64") || network("[::ffff:192.0.2.1]:5") != network("192.0.2.1:6") {
		t.Error("addresses of one host count apart")
	}
}

func TestHostName(t *testing.T) {
	for in, want := range map[string]string{"A.b.:80": "a.b", "[::1]:8420": "::1", "::1": "::1", "x": "x", "": "", "[::1]": "::1"} {
		if got := hostName(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

package web

import (
	"net"
	"net/netip"
	"os"
	"strings"
)

// hostCheck knows the names by which this server may be addressed. A page of another site can make its own
// name resolve to this server's address (DNS rebinding) and would then count as the same site; but its name
// is not one of these. An IP address cannot be rebound, so every one is allowed.
type hostCheck map[string]bool

func newHostCheck(listen string, allowed []string) hostCheck {
	h := hostCheck{"localhost": true}
	add := func(name string) {
		if name = hostName(name); name != "" {
			h[name] = true
		}
	}
	add(listen)
	for _, name := range allowed {
		add(name)
	}
	if name, err := os.Hostname(); err == nil {
		add(name)
		short, _, _ := strings.Cut(name, ".")
		add(short)
	}
	return h
}

// allowed reports whether a request's Host is one of ours. HTTP/1.0 programs may send none.
func (h hostCheck) allowed(host string) bool {
	name := hostName(host)
	if host == "" || h[name] || strings.HasSuffix(name, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}

// hostName returns the host of "host", "host:port" or "[v6]:port", in lower case.
func hostName(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

package web

import (
	"net/netip"
	"time"

	"dts/web/limit"
)

// newLimiter counts failed sign-ins per address. Tokens are too long to be guessed; the limit keeps those who
// try anyway from costing more than a line in a map.
func newLimiter() *limit.Limiter[netip.Prefix] {
	return &limit.Limiter[netip.Prefix]{Burst: 10, Refill: time.Second, Keys: 10_000}
}

// network is what counts as one address: an IPv4 address, or the /64 that an IPv6 host can choose from.
func network(remote string) netip.Prefix {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	a := ap.Addr().Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

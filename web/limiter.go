package web

import (
	"net/netip"
	"sync"
	"time"
)

// An address may fail to sign in this often at once, and once more per refill.
const (
	failuresAllowed = 10
	failureRefill   = time.Second
	maxAddresses    = 10_000
)

// limiter counts failed sign-ins per address. Tokens are too long to be guessed; the limit keeps those who
// try anyway from costing more than a line in a map.
type limiter struct {
	mu   sync.Mutex
	fail map[netip.Prefix]time.Time // when the address's last failure is forgotten
}

func newLimiter() *limiter { return &limiter{fail: map[netip.Prefix]time.Time{}} }

// allowed reports whether an address may try now.
func (l *limiter) allowed(remote string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fail[network(remote)].Sub(now) <= (failuresAllowed-1)*failureRefill
}

// failed counts a failure.
func (l *limiter) failed(remote string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.fail) >= maxAddresses {
		for k, until := range l.fail {
			if !until.After(now) {
				delete(l.fail, k)
			}
		}
		if len(l.fail) >= maxAddresses {
			clear(l.fail) // better a fresh start for all than memory without end
		}
	}
	key := network(remote)
	until := l.fail[key]
	if until.Before(now) {
		until = now
	}
	l.fail[key] = until.Add(failureRefill)
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

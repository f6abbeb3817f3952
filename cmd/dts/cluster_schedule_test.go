package main_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// troubleKind is one of the ways in which a cluster is broken.
type troubleKind string

const (
	killNode     troubleKind = "dts kill"              // kill -9, and a start later
	termNode     troubleKind = "dts term"              // SIGTERM, and a start later
	stopNode     troubleKind = "dts stop"              // SIGSTOP, and SIGCONT before it counts as dead
	stopNodeLong troubleKind = "dts stop, long"        // the same, so long that others take over
	killStore    troubleKind = "rqlite kill"           // kill -9 of any node of rqlite
	killLeader   troubleKind = "rqlite leader kill"    // of the one that leads
	termStore    troubleKind = "rqlite term"           // SIGTERM
	stopStore    troubleKind = "rqlite stop"           // SIGSTOP of any node, at times the one that leads
	stopMost     troubleKind = "rqlite majority stop"  // SIGSTOP of two nodes: there is no leader
	cutStore     troubleKind = "link dts-rqlite"       // between one dts and one or all nodes of rqlite
	cutStoreLong troubleKind = "link dts-rqlite, long" // from all of them, so long that others take over
	cutRaft      troubleKind = "link rqlite-rqlite"    // between one node of rqlite and one or both others
	cutPeers     troubleKind = "link dts-dts"          // between one dts and one or both others
	cutAll       troubleKind = "link dts-everything"   // one dts from all others
)

// A deck is one of the long kinds, and every other kind once. The long one comes first, so that a short test need not
// wait for it, and one at a time: else there would be little that works to look at.
var (
	longKinds  = []troubleKind{stopNodeLong, cutStoreLong}
	shortKinds = []troubleKind{killNode, termNode, stopNode, killStore, killLeader, termStore, stopStore, stopMost, cutStore, cutRaft, cutPeers, cutAll}
)

// onStore reports whether a kind breaks rqlite itself. One such at a time: what is left of rqlite should work, but
// in stopMost.
func (k troubleKind) onStore() bool {
	return slices.Contains([]troubleKind{killStore, killLeader, termStore, stopStore, stopMost, cutRaft}, k)
}

// linkWay is how a link is broken.
type linkWay string

const (
	severed linkWay = "severed" // connections break, and are not made
	silent  linkWay = "silent"  // nothing arrives, in either direction
	deaf    linkWay = "deaf"    // what is sent to the victim does not arrive
	muted   linkWay = "mute"    // what the victim sends does not arrive
)

// trouble is one fault. All of it but who leads is drawn before the test begins, so that the same seed gives the
// same faults.
type trouble struct {
	number int
	kind   troubleKind
	at     time.Duration // from the beginning
	lasts  time.Duration
	victim int  // which dts, or which node of rqlite
	first  bool // rather the leader than the victim; of links: one other rather than all
	way    linkWay
}

// String is a fault for the log.
func (tr trouble) String() string {
	return fmt.Sprintf("%3d  %6.1f s  %-22s %4.1f s", tr.number, tr.at.Seconds(), tr.kind, tr.lasts.Seconds())
}

// newSchedule draws the faults of a test.
func newSchedule(seed uint64, faults int) []trouble {
	rng := rand.New(rand.NewPCG(seed, 7))
	between := func(low, high float64) time.Duration {
		return time.Duration((low + (high-low)*rng.Float64()) * float64(time.Second))
	}
	long := 36 * time.Second // there is one of them: let it suffice, whatever happens beside it
	if faults >= longFaults {
		long = 30 * time.Second
	}
	var list []trouble
	var deck []troubleKind
	var nodeFree [3]time.Duration // from when on nothing is wrong with it
	var storeFree, longFree, now time.Duration
	for decks := int(seed % 2); len(list) < faults; {
		if len(deck) == 0 {
			deck = append([]troubleKind{longKinds[decks%2]}, shortKinds...)
			rng.Shuffle(len(shortKinds), func(i, j int) { deck[i+1], deck[j+1] = deck[j+1], deck[i+1] })
			decks++
		}
		// The first of the deck whose victim is well.
		victims := rng.Perm(3)
		victim := slices.IndexFunc(victims, func(v int) bool { return nodeFree[v] <= now })
		i := slices.IndexFunc(deck, func(k troubleKind) bool {
			switch {
			case k.onStore():
				return storeFree <= now
			case slices.Contains(longKinds, k) && longFree > now:
				return false
			}
			return victim >= 0
		})
		if i < 0 {
			now += 500 * time.Millisecond
			continue
		}
		tr := trouble{
			number: len(list) + 1, kind: deck[i], at: now, lasts: between(0.3, 6), victim: rng.IntN(3),
			first: rng.IntN(2) == 0, way: []linkWay{severed, silent, deaf, muted}[rng.IntN(4)],
		}
		deck = slices.Delete(deck, i, i+1)
		if slices.Contains(longKinds, tr.kind) {
			tr.lasts = long
			longFree = now + long + 3*time.Second
		}
		over := now + tr.lasts + 3*time.Second
		if tr.kind.onStore() {
			storeFree = over
		} else {
			tr.victim = victims[victim]
			nodeFree[tr.victim] = over
		}
		list = append(list, tr)
		now += between(1, 3)
	}
	return list
}

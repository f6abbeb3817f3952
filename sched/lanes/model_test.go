package lanes

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// flows is how many flows the model has.
const flows = 4

// entry is an item of the model.
type entry struct {
	id    int
	lane  Lane
	flow  int
	ready time.Time
	it    *Item[int]
}

// model is a Queue as plain slices. It knows what must hold for any pop, and
// recomputes everything each time.
type model struct {
	waits   [laneCount][flows][]entry
	turns   [laneCount][]int // flows with items that are not held, the next one first
	held    [flows]bool
	maxWait time.Duration
	aged    bool // the last pop was of an aged item

	// waited counts the pops since the next item of each lane came to be the next, and
	// passed those among them that were by share.
	waited, passed [laneCount]int
	// lead[i][j] is how far lane i is ahead of lane j in services weighed by
	// their strides, and high and low are its extremes, since both had items.
	lead, high, low [laneCount][laneCount]int
}

// frontWaits is among how many pops the next item of a lane must be. Among half
// as many if only pops by share are counted.
var frontWaits = [laneCount]int{High: 8, Medium: 10, Low: 30, Retry: 12}

func (m *model) lenOf(lane Lane) (n int) {
	for _, list := range m.waits[lane] {
		n += len(list)
	}
	return n
}

func (m *model) len() (n int) {
	for lane := range Lane(laneCount) {
		n += m.lenOf(lane)
	}
	return n
}

// oldest returns a front item that became ready first, of equals one of the first
// lane; not of flows that are held.
func (m *model) oldest() (found entry, ok bool) {
	for lane := range m.waits {
		for _, flow := range m.turns[lane] {
			if front := m.waits[lane][flow][0]; !ok || front.ready.Before(found.ready) {
				found, ok = front, true
			}
		}
	}
	return found, ok
}

// nextOf returns the id of the item that is next in a lane; -1 when there is none.
func (m *model) nextOf(lane Lane) int {
	if len(m.turns[lane]) == 0 {
		return -1
	}
	return m.waits[lane][m.turns[lane][0]][0].id
}

// change runs f and restarts, of each lane, what depends on its next item and on its being busy.
func (m *model) change(f func()) {
	var before [laneCount]int
	for lane := range Lane(laneCount) {
		before[lane] = m.nextOf(lane)
	}
	f()
	for lane := range Lane(laneCount) {
		next := m.nextOf(lane)
		if next != before[lane] {
			m.waited[lane], m.passed[lane] = 0, 0
		}
		if next >= 0 {
			continue
		}
		for other := range laneCount {
			for _, pair := range [][2]int{{int(lane), other}, {other, int(lane)}} {
				m.lead[pair[0]][pair[1]], m.high[pair[0]][pair[1]], m.low[pair[0]][pair[1]] = 0, 0, 0
			}
		}
	}
	if m.len() == 0 {
		m.aged = false
	}
}

// put inserts an entry into its flow.
func (m *model) put(e entry, i int) {
	m.change(func() {
		list := &m.waits[e.lane][e.flow]
		if *list = slices.Insert(*list, i, e); len(*list) == 1 && !m.held[e.flow] {
			m.turns[e.lane] = append(m.turns[e.lane], e.flow)
		}
	})
}

// drop removes index i of a flow.
func (m *model) drop(lane Lane, flow, i int) {
	m.change(func() {
		list := &m.waits[lane][flow]
		if *list = slices.Delete(*list, i, i+1); len(*list) == 0 {
			m.leave(lane, flow)
		}
	})
}

func (m *model) leave(lane Lane, flow int) {
	m.turns[lane] = slices.DeleteFunc(m.turns[lane], func(f int) bool { return f == flow })
}

func (m *model) hold(flow int) {
	m.change(func() {
		m.held[flow] = true
		for lane := range Lane(laneCount) {
			m.leave(lane, flow)
		}
	})
}

func (m *model) resume(flow int) {
	m.change(func() {
		m.held[flow] = false
		for lane := range Lane(laneCount) {
			if len(m.waits[lane][flow]) > 0 {
				m.turns[lane] = append(m.turns[lane], flow)
			}
		}
	})
}

// charge notes that a lane was served by share, and checks that no lane is ahead
// of a busy other by more than one service of each: the bound that start-time
// fair queueing guarantees for every interval in which both are busy.
func (m *model) charge(t *rapid.T, lane Lane) {
	for other := range Lane(laneCount) {
		if other == lane || len(m.turns[other]) == 0 {
			continue
		}
		for _, d := range []struct {
			i, j Lane
			by   int
		}{{lane, other, int(lane.stride())}, {other, lane, -int(lane.stride())}} {
			lead, high, low := &m.lead[d.i][d.j], &m.high[d.i][d.j], &m.low[d.i][d.j]
			*lead += d.by
			*high, *low = max(*high, *lead), min(*low, *lead)
			if *high-*low > int(lane.stride()+other.stride()) {
				t.Fatalf("%v and %v: unfair by %d", lane, other, *high-*low)
			}
		}
	}
}

// pop checks a popped id against what the rules allow, and returns its handle.
func (m *model) pop(t *rapid.T, now time.Time, id int, ok bool) *Item[int] {
	oldest, some := m.oldest()
	if ok != some {
		t.Fatalf("Pop = %v with %d waiting", ok, m.len())
	}
	if !ok {
		return nil
	}
	var e entry
	for lane := range Lane(laneCount) {
		for _, flow := range m.turns[lane] {
			if front := m.waits[lane][flow][0]; front.id == id {
				e = front
			}
		}
	}
	if e.it == nil {
		t.Fatalf("popped %d, which is not at the front of a flow that may be served", id)
	}
	for l := range Lane(laneCount) {
		if len(m.turns[l]) == 0 {
			continue
		}
		if m.waited[l]++; m.waited[l] > frontWaits[l] {
			t.Fatalf("the next of %v is not among %d pops", l, frontWaits[l])
		}
	}
	if !m.aged && now.Sub(oldest.ready) >= m.maxWait {
		if !e.ready.Equal(oldest.ready) || e.lane != oldest.lane {
			t.Fatalf("popped %d, want the aged %d", id, oldest.id)
		}
		m.aged = true
		m.drop(e.lane, e.flow, 0)
		return e.it
	}
	m.aged = false
	for l := range Lane(laneCount) {
		if len(m.turns[l]) == 0 {
			continue
		}
		if m.passed[l]++; m.passed[l] > frontWaits[l]/2 {
			t.Fatalf("the next of %v is not among %d pops by share", l, frontWaits[l]/2)
		}
	}
	if m.nextOf(e.lane) != id {
		t.Fatalf("popped %d of %v, whose next is %d", id, e.lane, m.nextOf(e.lane))
	}
	m.charge(t, e.lane)
	m.change(func() {
		m.turns[e.lane] = append(m.turns[e.lane][1:], e.flow)
	})
	m.drop(e.lane, e.flow, 0)
	return e.it
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Short enough that much ages, or so long that nothing does.
		m := &model{maxWait: rapid.SampledFrom([]time.Duration{1, 20, 1000, time.Hour}).Draw(t, "maxWait")}
		q := New[int](Options{MaxWait: m.maxWait})
		var fs [flows]Flow[int]
		now, ids := epoch, 0
		var gone []*Item[int]

		lane := rapid.Custom(func(t *rapid.T) Lane { return Lane(rapid.IntRange(0, laneCount-1).Draw(t, "lane")) })
		flow := rapid.IntRange(0, flows-1)
		ready := func(t *rapid.T) time.Time { return now.Add(-time.Duration(rapid.IntRange(0, 5).Draw(t, "ago"))) }

		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				l, f, n := lane.Draw(t, "lane"), flow.Draw(t, "flow"), rapid.IntRange(1, 40).Draw(t, "n")
				for range n {
					e := entry{id: ids, lane: l, flow: f, ready: ready(t)}
					e.it = q.Push(l, &fs[f], e.ready, e.id)
					m.put(e, len(m.waits[l][f]))
					ids++
				}
			},
			"push front": func(t *rapid.T) {
				e := entry{id: ids, lane: lane.Draw(t, "lane"), flow: flow.Draw(t, "flow"), ready: ready(t)}
				e.it = q.PushFront(e.lane, &fs[e.flow], e.ready, e.id)
				m.put(e, 0)
				ids++
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "n") {
					peeked, some := q.Peek(now)
					id, ok := q.Pop(now)
					if peeked != id || some != ok {
						t.Fatalf("Peek = %d, %v, Pop = %d, %v", peeked, some, id, ok)
					}
					if it := m.pop(t, now, id, ok); it != nil {
						gone = append(gone, it)
					}
				}
			},
			"hold": func(t *rapid.T) {
				f := flow.Draw(t, "flow")
				q.Hold(&fs[f])
				m.hold(f)
			},
			"resume": func(t *rapid.T) {
				if f := flow.Draw(t, "flow"); m.held[f] {
					q.Resume(&fs[f])
					m.resume(f)
				}
			},
			"remove": func(t *rapid.T) {
				l, f := lane.Draw(t, "lane"), flow.Draw(t, "flow")
				if len(m.waits[l][f]) == 0 {
					t.Skip("nothing waits there")
				}
				i := rapid.IntRange(0, len(m.waits[l][f])-1).Draw(t, "i")
				it := m.waits[l][f][i].it
				if !q.Remove(it) {
					t.Fatal("Remove returned false for a waiting item")
				}
				m.drop(l, f, i)
				gone = append(gone, it)
			},
			"remove again": func(t *rapid.T) {
				if len(gone) == 0 {
					t.Skip("nothing is gone")
				}
				if q.Remove(rapid.SampledFrom(gone).Draw(t, "item")) {
					t.Fatal("removed what is gone")
				}
			},
			"drain": func(t *rapid.T) {
				f := flow.Draw(t, "flow")
				var got, want []int
				fs[f].Drain(func(id int) { got = append(got, id) })
				for l := range Lane(laneCount) {
					for len(m.waits[l][f]) > 0 {
						e := m.waits[l][f][0]
						want, gone = append(want, e.id), append(gone, e.it)
						m.drop(l, f, 0)
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("Drain = %v, want %v", got, want)
				}
			},
			"advance": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "d")))
			},
			"": func(t *rapid.T) {
				if q.Len() != m.len() {
					t.Fatalf("Len = %d, want %d", q.Len(), m.len())
				}
				for l := range Lane(laneCount) {
					if q.LenOf(l) != m.lenOf(l) {
						t.Fatalf("LenOf(%v) = %d, want %d", l, q.LenOf(l), m.lenOf(l))
					}
				}
				oldest, _ := m.oldest()
				if !q.Oldest().Equal(oldest.ready) {
					t.Fatalf("Oldest = %v, want %v", q.Oldest(), oldest.ready)
				}
				for f := range fs {
					var n int
					var at time.Time
					for l := range m.waits {
						list := m.waits[l][f]
						n += len(list)
						if len(list) > 0 && (at.IsZero() || list[0].ready.Before(at)) {
							at = list[0].ready
						}
					}
					if fs[f].Len() != n || !fs[f].Oldest().Equal(at) || fs[f].Held() != m.held[f] {
						t.Fatalf("flow %d: Len = %d, Oldest = %v, Held = %v; want %d, %v, %v", f, fs[f].Len(), fs[f].Oldest(), fs[f].Held(), n, at, m.held[f])
					}
				}
			},
		})
	})
}

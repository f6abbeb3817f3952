package lanes

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// entry is an item of the model.
type entry struct {
	id    int
	lane  Lane
	ready time.Time
	it    *Item[int]
}

// model is a Queue as plain slices. It knows what must hold for any pop, and
// recomputes everything each time.
type model struct {
	lanes   [laneCount][]entry
	maxWait time.Duration
	aged    bool // the last pop was of an aged item

	// waited counts the pops since the front of each lane came to be the front, and
	// passed those among them that were by share.
	waited, passed [laneCount]int
	// lead[i][j] is how far lane i is ahead of lane j in services weighed by
	// their strides, and high and low are its extremes, since both had items.
	lead, high, low [laneCount][laneCount]int
}

// frontWaits is among how many pops the front item of a lane must be. Among half
// as many if only pops by share are counted.
var frontWaits = [laneCount]int{High: 8, Medium: 10, Low: 30, Retry: 12}

func (m *model) len() (n int) {
	for _, lane := range m.lanes {
		n += len(lane)
	}
	return n
}

// oldest returns the front item that became ready first, of equals that of the
// first lane.
func (m *model) oldest() (found entry, ok bool) {
	for _, lane := range m.lanes {
		if len(lane) > 0 && (!ok || lane[0].ready.Before(found.ready)) {
			found, ok = lane[0], true
		}
	}
	return found, ok
}

// drop removes index i of a lane and restarts what depends on the lane's front
// and on lanes being busy.
func (m *model) drop(lane Lane, i int) {
	m.lanes[lane] = slices.Delete(m.lanes[lane], i, i+1)
	if i == 0 {
		m.waited[lane], m.passed[lane] = 0, 0
	}
	if len(m.lanes[lane]) == 0 {
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

// charge notes that a lane was served by share, and checks that no lane is ahead
// of a busy other by more than one service of each: the bound that start-time
// fair queueing guarantees for every interval in which both are busy.
func (m *model) charge(t *rapid.T, lane Lane) {
	for other := range Lane(laneCount) {
		if other == lane || len(m.lanes[other]) == 0 {
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

// pop checks a popped id against what the rules allow.
func (m *model) pop(t *rapid.T, now time.Time, id int, ok bool) {
	oldest, some := m.oldest()
	if ok != some {
		t.Fatalf("Pop = %v with %d waiting", ok, m.len())
	}
	if !ok {
		return
	}
	lane := Lane(-1)
	for l := range Lane(laneCount) {
		if len(m.lanes[l]) > 0 && m.lanes[l][0].id == id {
			lane = l
		}
	}
	if lane < 0 {
		t.Fatalf("popped %d, which is not at the front of a lane", id)
	}
	for l := range Lane(laneCount) {
		if len(m.lanes[l]) == 0 {
			continue
		}
		if m.waited[l]++; m.waited[l] > frontWaits[l] {
			t.Fatalf("the front of %v is not among %d pops", l, frontWaits[l])
		}
	}
	if !m.aged && now.Sub(oldest.ready) >= m.maxWait {
		if id != oldest.id {
			t.Fatalf("popped %d, want the aged %d", id, oldest.id)
		}
		m.aged = true
	} else {
		m.aged = false
		for l := range Lane(laneCount) {
			if len(m.lanes[l]) == 0 {
				continue
			}
			if m.passed[l]++; m.passed[l] > frontWaits[l]/2 {
				t.Fatalf("the front of %v is not among %d pops by share", l, frontWaits[l]/2)
			}
		}
		m.charge(t, lane)
	}
	m.drop(lane, 0)
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Short enough that much ages, or so long that nothing does.
		m := &model{maxWait: rapid.SampledFrom([]time.Duration{1, 20, 1000, time.Hour}).Draw(t, "maxWait")}
		q := New[int](Options{MaxWait: m.maxWait})
		now, ids := epoch, 0
		var gone []*Item[int]

		push := func(t *rapid.T, lane Lane, ready time.Time) {
			it := q.Push(lane, ready, ids)
			if len(m.lanes[lane]) == 0 {
				m.waited[lane], m.passed[lane] = 0, 0
			}
			m.lanes[lane] = append(m.lanes[lane], entry{ids, lane, ready, it})
			ids++
		}
		lane := rapid.Custom(func(t *rapid.T) Lane { return Lane(rapid.IntRange(0, laneCount-1).Draw(t, "lane")) })

		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				l, n := lane.Draw(t, "lane"), rapid.IntRange(1, 40).Draw(t, "n")
				for range n {
					push(t, l, now.Add(-time.Duration(rapid.IntRange(0, 5).Draw(t, "ago"))))
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "n") {
					var front [laneCount]*Item[int]
					for l := range front {
						if len(m.lanes[l]) > 0 {
							front[l] = m.lanes[l][0].it
						}
					}
					id, ok := q.Pop(now)
					m.pop(t, now, id, ok)
					for l, it := range front {
						if it != nil && (len(m.lanes[l]) == 0 || m.lanes[l][0].it != it) {
							gone = append(gone, it)
						}
					}
				}
			},
			"remove": func(t *rapid.T) {
				l := lane.Draw(t, "lane")
				if len(m.lanes[l]) == 0 {
					t.Skip("nothing waits there")
				}
				i := rapid.IntRange(0, len(m.lanes[l])-1).Draw(t, "i")
				it := m.lanes[l][i].it
				if !q.Remove(it) {
					t.Fatal("Remove returned false for a waiting item")
				}
				m.drop(l, i)
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
			"advance": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "d")))
			},
			"": func(t *rapid.T) {
				if q.Len() != m.len() {
					t.Fatalf("Len = %d, want %d", q.Len(), m.len())
				}
				for l := range Lane(laneCount) {
					if q.LenOf(l) != len(m.lanes[l]) {
						t.Fatalf("LenOf(%v) = %d, want %d", l, q.LenOf(l), len(m.lanes[l]))
					}
				}
				oldest, _ := m.oldest()
				if !q.Oldest().Equal(oldest.ready) {
					t.Fatalf("Oldest = %v, want %v", q.Oldest(), oldest.ready)
				}
			},
		})
	})
}

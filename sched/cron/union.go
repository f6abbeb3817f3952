package cron

import (
	"math/bits"
	"time"
)

// union is several expressions in one zone, under the same policies. An instant that two of them
// name is one instant.
type union []*clock

func (u union) Next(after time.Time) time.Time {
	if after.Unix() >= maxUnix {
		return time.Time{}
	}
	from := max(after.Unix()+1, minUnix)
	best, found := min(from+horizon, maxUnix+1), false
	for _, c := range u {
		if t, ok := c.first(from, best); ok {
			best, found = t, true
		}
	}
	return u[0].at(best, found)
}

func (u union) Prev(through time.Time) time.Time {
	if through.Unix() < minUnix {
		return time.Time{}
	}
	to := min(through.Unix(), maxUnix) + 1
	best, found := max(to-horizon, minUnix)-1, false
	for _, c := range u {
		if t, ok := c.last(best+1, to); ok {
			best, found = t, true
		}
	}
	return u[0].at(best, found)
}

// Count counts day by day, and the times of a day by the set of expressions that pick the day: a
// year has few such sets, so a year of seconds costs little.
func (u union) Count(after, through time.Time) int64 {
	from, to := ends(after, through)
	if from >= to {
		return 0
	}
	t := newTally(u)
	var n int64
	for from < to {
		end := t.stretch(from, to, &n)
		from = end
	}
	return n
}

// dayTimes is a set of the seconds of one day.
type dayTimes [secondsPerDay / 64]uint64

// tally counts the union of several sets of readings.
type tally struct {
	u      union
	walls  []*wall
	sets   []*dayTimes      // the times of day of each expression
	whole  map[uint32]int64 // how many times a day has that the expressions in the key pick
	months []monthPick
}

// monthPick is the month that an expression was last asked about, and its picked days.
type monthPick struct {
	month month
	days  uint32
}

func newTally(u union) *tally {
	t := &tally{u: u, whole: map[uint32]int64{}, months: make([]monthPick, len(u))}
	for _, c := range u {
		w := c.wall.(*wall)
		t.walls = append(t.walls, w)
		t.sets = append(t.sets, w.set())
	}
	return t
}

// stretch adds the instants of one span in [from, to) to n and returns where the span ends.
func (t *tally) stretch(from, to int64, n *int64) int64 {
	spans := make([]span, len(t.u))
	for i, c := range t.u {
		spans[i] = c.spanAt(from)
	}
	s := spans[0] // all have the same borders
	end := min(s.end, to)
	*n += t.readings(spans, from+s.offset, end+s.offset)
	for _, of := range spans {
		if of.gapRun < from || of.gapRun >= end {
			continue
		}
		if at := of.gapRun + s.offset; t.readings(spans, at, at+1) == 0 {
			*n++
		}
		break // the others run at the same instant
	}
	return s.end
}

// readings counts the readings in [from, to) that at least one expression may run at.
func (t *tally) readings(spans []span, from, to int64) int64 {
	var n int64
	for from < to {
		day := floorDiv(from, secondsPerDay)
		midnight := day * secondsPerDay
		end := min(midnight+secondsPerDay, to)
		picked, partly := uint32(0), end-from < secondsPerDay
		for i, w := range t.walls {
			if t.picks(i, w, day) {
				picked |= 1 << i
				partly = partly || spans[i].wallFrom > from || spans[i].wallTo < end
			}
		}
		switch count, known := t.whole[picked]; {
		case picked == 0:
		case partly:
			n += t.partOfDay(spans, picked, midnight, from, end)
		case known:
			n += count
		default:
			count = t.partOfDay(spans, picked, midnight, from, end)
			t.whole[picked] = count
			n += count
		}
		from = end
	}
	return n
}

// picks reports whether expression i picks a day.
func (t *tally) picks(i int, w *wall, day int64) bool {
	m := &t.months[i]
	if day < m.month.first || day >= m.month.first+int64(m.month.days) {
		m.month = monthOf(day)
		m.days = w.pick(m.month)
	}
	return m.days&(2<<(day-m.month.first)) != 0
}

// partOfDay counts the readings in [from, to), which is inside the day that begins at midnight, of
// the expressions in picked.
func (t *tally) partOfDay(spans []span, picked uint32, midnight, from, to int64) int64 {
	var all dayTimes
	for ; picked != 0; picked &= picked - 1 {
		i := bits.TrailingZeros32(picked)
		all.add(t.sets[i], max(from, spans[i].wallFrom)-midnight, min(to, spans[i].wallTo)-midnight)
	}
	var n int64
	for _, word := range all {
		n += int64(bits.OnesCount64(word))
	}
	return n
}

// add adds the times of s in [from, to).
func (d *dayTimes) add(s *dayTimes, from, to int64) {
	if from >= to {
		return
	}
	first, last := from/64, (to-1)/64
	for i := first; i <= last; i++ {
		word := s[i]
		if i == first {
			word &= ^uint64(0) << (from % 64)
		}
		if i == last {
			word &= ^uint64(0) >> (63 - (to-1)%64)
		}
		d[i] |= word
	}
}

// set lists the times one by one.
func (d times) set() *dayTimes {
	var s dayTimes
	for h := d.hours; h != 0; h &= h - 1 {
		for m := d.minutes; m != 0; m &= m - 1 {
			at := bits.TrailingZeros64(h)*3600 + bits.TrailingZeros64(m)*60
			s[at/64] |= d.seconds << (at % 64)
			if over := at % 64; over > 4 {
				s[at/64+1] |= d.seconds >> (64 - over)
			}
		}
	}
	return &s
}

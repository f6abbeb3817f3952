package timetable

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dts"
	"dts/sched/calendar"
	"dts/sched/cron"
)

// model applies the rules word for word to every instant of a few years.
type model struct {
	runs     []time.Time
	excluded []Excluded // one for each instant
}

func newModel(t *Table, base cron.Schedule, s *dts.Schedule, from, to time.Time) model {
	var m model
	var own []time.Time
	for x := base.Next(from); !x.IsZero() && x.Before(to); x = base.Next(x) {
		own = append(own, x)
	}
	reason := func(x time.Time) (name, cal string, closed bool) {
		for _, c := range t.exclude {
			if w, ok := c.At(x, t.loc); ok {
				return w.Name, w.Calendar, true
			}
		}
		if len(t.require) == 0 {
			return "", "", false
		}
		for _, c := range t.require {
			if _, ok := c.At(x, t.loc); ok {
				return "", "", false
			}
		}
		return outside, join(t.require, ", "), true
	}
	isOwn := map[int64]bool{}
	perDay := map[calendar.Day]int{}
	for _, x := range own {
		isOwn[x.UnixMicro()] = true
		perDay[calendar.DayOf(x.In(t.loc))]++
	}
	taken := map[int64]bool{}
	for _, x := range own {
		name, cal, closed := reason(x)
		if !closed {
			m.runs = append(m.runs, x)
			continue
		}
		e := Excluded{From: x, To: x, Count: 1, Calendar: cal, Name: name}
		d := calendar.DayOf(x.In(t.loc))
		for n := calendar.Day(1); s.CalendarShift != "" && n <= 366 && perDay[d] <= 100; n++ {
			day := d + n
			if s.CalendarShift == dts.ShiftPrevious {
				day = d - n
			}
			if wd := day.Weekday(); t.weekend[wd] {
				continue
			}
			y := day.At(calendar.Clock(x.In(t.loc)), t.loc).In(t.loc)
			if _, _, closed := reason(y); closed || calendar.DayOf(y) != day {
				continue
			}
			switch {
			case !s.StartTime.IsZero() && y.Before(s.StartTime), !s.EndTime.IsZero() && y.After(s.EndTime):
			case isOwn[y.UnixMicro()] || taken[y.UnixMicro()]:
				e.CoveredBy = y
			default:
				e.MovedTo = y
				taken[y.UnixMicro()] = true
				m.runs = append(m.runs, y)
			}
			break
		}
		m.excluded = append(m.excluded, e)
	}
	slices.SortFunc(m.runs, time.Time.Compare)
	return m
}

var (
	modelZones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo", "America/Havana"}
	modelExprs = []string{
		"0 9 * * *", "30 2 * * *", "0 0 * * *", "0 */6 * * *", "15 9 * * MON,SAT", "0 0 L * *", "0 12 1,15 * *", "0 18 LW * *",
		"*/20 2,3 * * *", "0 7 29 2 *", "*/12 * * * SUN", "*/15 * 1 * *",
	}
)

func drawCalendar(t *rapid.T, name string) dts.Calendar {
	c := dts.Calendar{Name: name, TimeZone: rapid.SampledFrom(modelZones).Draw(t, "calendar zone")}
	for range rapid.IntRange(0, 6).Draw(t, "days") {
		d := calendar.DayOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) + calendar.Day(rapid.IntRange(-60, 430).Draw(t, "day"))
		c.Days = append(c.Days, fmt.Sprintf("%s/%s", d, d+calendar.Day(rapid.IntRange(0, 12).Draw(t, "length"))))
	}
	if rapid.Bool().Draw(t, "has weekdays") {
		c.Weekdays = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}), 1, 5, rapid.ID).Draw(t, "weekdays")
	}
	if rapid.Bool().Draw(t, "has windows") {
		c.Windows = append(c.Windows, dts.Window{
			Cron:            rapid.SampledFrom([]string{"0 1 * * *", "30 8 * * MON-FRI", "0 0 1 * *", "0 22 * * *"}).Draw(t, "window"),
			DurationSeconds: float64(rapid.IntRange(1, 40).Draw(t, "hours") * 1800),
		})
	}
	if rapid.IntRange(0, 3).Draw(t, "has holidays") == 0 {
		c.Holidays = &dts.Holidays{Country: rapid.SampledFrom([]string{"de", "us", "jp"}).Draw(t, "country")}
	}
	if rapid.IntRange(0, 3).Draw(t, "has weekend") == 0 {
		c.Weekend = rapid.SampledFrom([][]string{{"FRI", "SAT"}, {"SUN"}, {"MON", "TUE", "WED", "THU", "FRI", "SAT"}}).Draw(t, "weekend")
	}
	return c
}

// Whatever the calendars, a table says what the rules say.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := dts.Schedule{TimeZone: rapid.SampledFrom(modelZones).Draw(t, "zone")}
		if rapid.IntRange(0, 4).Draw(t, "interval") == 0 {
			s.IntervalSeconds = float64(rapid.SampledFrom([]int{7 * 3600, 36 * 3600, 86400, 777777}).Draw(t, "seconds"))
		} else {
			s.Cron = rapid.SampledFrom(modelExprs).Draw(t, "cron")
		}
		s.CalendarShift = rapid.SampledFrom([]dts.CalendarShift{"", dts.ShiftNext, dts.ShiftPrevious}).Draw(t, "shift")
		s.DSTOverlap = rapid.SampledFrom([]dts.DSTOverlap{"", "SECOND", "BOTH"}).Draw(t, "overlap")
		year := func(d time.Duration) time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(d) }
		within := rapid.Custom(func(t *rapid.T) time.Time {
			return year(time.Duration(rapid.Int64Range(-60*86400, 425*86400).Draw(t, "s")) * time.Second)
		})
		if rapid.IntRange(0, 3).Draw(t, "bounds") == 0 {
			s.StartTime = within.Draw(t, "start")
			s.EndTime = s.StartTime.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "long")) * 24 * time.Hour)
		}
		known := map[string]*calendar.Calendar{}
		for i := range rapid.IntRange(1, 3).Draw(t, "calendars") {
			def := drawCalendar(t, fmt.Sprintf("c%d", i))
			c, err := calendar.Compile(&def)
			if err != nil {
				t.Fatal(err)
			}
			known[def.Name] = c
			if rapid.IntRange(0, 2).Draw(t, "required") == 0 {
				s.RequireCalendars = append(s.RequireCalendars, def.Name)
			} else {
				s.ExcludeCalendars = append(s.ExcludeCalendars, def.Name)
			}
		}
		anchor := time.Date(2023, 1, 1, 7, 0, 0, 0, time.UTC)
		table, err := Compile(&s, Options{Anchor: anchor, Calendars: known})
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(table, table.base, &s, year(-800*24*time.Hour), year(1180*24*time.Hour))
		for range 12 {
			a, b := within.Draw(t, "a"), within.Draw(t, "b")
			if x := table.Next(a); inRange(x) && rapid.Bool().Draw(t, "at a run") {
				a = x
			}
			if b.Before(a) {
				a, b = b, a
			}
			m.compare(t, table, a, b)
		}
	})
}

// inRange reports whether the model knows all that can be moved to x.
func inRange(x time.Time) bool { return x.UTC().Year() == 2026 }

func (m *model) compare(t *rapid.T, table *Table, a, b time.Time) {
	in := func(x time.Time) bool { return x.After(a) && !x.After(b) }
	first := slices.IndexFunc(m.runs, func(x time.Time) bool { return x.After(a) })
	if first >= 0 && !m.runs[first].After(b) {
		if got := table.Next(a); !got.Equal(m.runs[first]) {
			t.Fatalf("Next(%v): %v, want %v", a, got, m.runs[first])
		}
	} else if got := table.Next(a); in(got) {
		t.Fatalf("Next(%v): %v, want none until %v", a, got, b)
	}
	last := -1
	count := int64(0)
	for i, x := range m.runs {
		if !x.After(b) {
			last = i
		}
		if in(x) {
			count++
		}
	}
	if last >= 0 && m.runs[last].After(a) {
		if got := table.Prev(b); !got.Equal(m.runs[last]) {
			t.Fatalf("Prev(%v): %v, want %v", b, got, m.runs[last])
		}
	} else if got := table.Prev(b); in(got) {
		t.Fatalf("Prev(%v): %v, want none since %v", b, got, a)
	}
	if got := table.Count(a, b); got != count {
		t.Fatalf("Count(%v, %v): %d, want %d", a, b, got, count)
	}
	m.compareExcluded(t, table, a, b)
}

func (m *model) compareExcluded(t *rapid.T, table *Table, a, b time.Time) {
	var want []Excluded
	var total int64
	for _, e := range m.excluded {
		if !e.From.After(a) || e.From.After(b) {
			continue
		}
		total++
		if got, ok := table.ExcludedAt(e.From); !ok || !equal(got, e) {
			t.Fatalf("ExcludedAt(%v): %+v %v, want %+v", e.From, got, ok, e)
		}
		if n := len(want); n > 0 && !want[n-1].alone() && !e.alone() && want[n-1].Name == e.Name && want[n-1].Calendar == e.Calendar &&
			table.base.Next(want[n-1].To).Equal(e.From) {
			want[n-1].To = e.To
			want[n-1].Count++
			continue
		}
		want = append(want, e)
	}
	if got := table.Excluded(a, b, 1<<30); !slices.EqualFunc(got, want, equal) {
		t.Fatalf("Excluded(%v, %v):\n%+v\nwant\n%+v", a, b, got, want)
	}
	limit := rapid.IntRange(1, 5).Draw(t, "limit")
	got := table.Excluded(a, b, limit)
	if len(got) != min(limit, len(want)) {
		t.Fatalf("Excluded with limit %d: %d entries of %d", limit, len(got), len(want))
	}
	for i, e := range got {
		total -= e.Count
		if i < limit-1 && !equal(e, want[i]) || i == 0 && !e.From.Equal(want[0].From) || i == len(got)-1 && !e.To.Equal(want[len(want)-1].To) {
			t.Fatalf("Excluded with limit %d: %+v, want %+v", limit, got, want)
		}
	}
	if total != 0 {
		t.Fatalf("Excluded with limit %d leaves out %d", limit, total)
	}
}

func equal(a, b Excluded) bool {
	return a.From.Equal(b.From) && a.To.Equal(b.To) && a.Count == b.Count && a.Calendar == b.Calendar && a.Name == b.Name &&
		a.MovedTo.Equal(b.MovedTo) && a.CoveredBy.Equal(b.CoveredBy)
}

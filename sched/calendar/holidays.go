package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rickar/cal/v2"

	"dts"
)

// Country is a country whose public holidays are known.
type Country struct {
	Code           string   // ISO 3166 alpha-2 in lower case, such as de
	Name           string   // in English
	Regions        []string // ISO 3166-2 without the country, in lower case, such as by; nil when only national ones are known
	RegionRequired bool     // no holidays are known for the country as a whole
}

// Regions returns the countries whose public holidays are known, by code.
func Regions() []Country {
	var list []Country
	for _, c := range countries() {
		known := Country{Code: c.code, Name: c.name, RegionRequired: c.national == nil}
		for _, r := range c.regions {
			known.Regions = append(known.Regions, r.code)
		}
		list = append(list, known)
	}
	slices.SortFunc(list, func(a, b Country) int { return cmp.Compare(a.Code, b.Code) })
	return list
}

// holidays are the public holidays of a country, changed by hand.
type holidays struct {
	list        []*cal.Holiday
	add, remove []days
}

func compileHolidays(h *dts.Holidays, bad *problems) *holidays {
	if h == nil {
		return nil
	}
	list, field, err := lookUp(strings.ToLower(h.Country), strings.ToLower(h.Region))
	if err != nil {
		bad.add("holidays."+field, "%s", err)
	}
	return &holidays{
		list:   list,
		add:    compileDays("holidays.add", h.Add, bad),
		remove: compileDays("holidays.remove", h.Remove, bad),
	}
}

func lookUp(code, reg string) (list []*cal.Holiday, field string, err error) {
	all := countries()
	i := slices.IndexFunc(all, func(c country) bool { return c.code == code })
	if i < 0 {
		var codes []string
		for _, c := range all {
			codes = append(codes, c.code)
		}
		return nil, "country", fmt.Errorf("%.32q is not a country whose holidays are known; use one of %s, or an .ics file", code, strings.Join(codes, ", "))
	}
	c := all[i]
	if reg == "" && c.national != nil {
		return c.national, "", nil
	}
	var codes []string
	for _, r := range c.regions {
		if r.code == reg {
			return r.holidays, "", nil
		}
		codes = append(codes, r.code)
	}
	switch {
	case reg == "":
		return nil, "region", fmt.Errorf("is missing: holidays of %s are known by region; use one of %s", c.name, strings.Join(codes, ", "))
	case codes == nil:
		return nil, "region", fmt.Errorf("%.32q is not known: of %s only the national holidays are; leave it out, and add days by hand", reg, c.name)
	}
	return nil, "region", fmt.Errorf("%.32q is not a known region of %s; use one of %s", reg, c.name, strings.Join(codes, ", "))
}

// in appends the holidays of the civil years [from, to]: both the day itself and the one on which people have off
// in its place.
func (h *holidays) in(list []span, from, to int) []span {
	for year := from; year <= to; year++ {
		for _, holiday := range h.list {
			actual, observed := holiday.Calc(year)
			for _, t := range []time.Time{actual, observed} {
				if t.IsZero() {
					continue
				}
				day := DayOf(t.Add(2 * time.Hour)) // midnight in the machine's zone, or an hour before where its clock skips that
				if !h.removed(day) {
					list = append(list, span{day, day, holiday.Name})
				}
				if observed.Equal(actual) {
					break
				}
			}
		}
	}
	for _, d := range h.add {
		list = d.in(list, from, to)
	}
	return list
}

func (h *holidays) removed(day Day) bool {
	return slices.ContainsFunc(h.remove, func(d days) bool { return d.covers(day) })
}

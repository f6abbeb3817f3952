package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// foreign recognises expressions of other schedulers that would be misread or refused without
// help: EventBridge's cron(…), rate(…) and at(…), with or without the wrapper, and Quartz's seventh
// field. It refuses them with the translation.
func foreign(expr string, words []string) *SyntaxError {
	lower := strings.ToLower(expr)
	if inner, ok := within(lower, "rate("); ok {
		bad := &SyntaxError{Msg: "is an AWS rate expression"}
		if n, unit, ok := strings.Cut(strings.TrimSpace(inner), " "); ok {
			count, isNum := number(n)
			unit = strings.TrimSuffix(strings.TrimSpace(unit), "s")
			if isNum && count > 0 && (unit == "minute" || unit == "hour" || unit == "day") {
				bad.Hint = fmt.Sprintf("@every %d%s", count, unit[:1])
			}
		}
		return bad
	}
	if inner, ok := within(lower, "at("); ok {
		bad := &SyntaxError{Msg: "is an AWS expression for one time; make a one-time task"}
		if t, err := time.Parse("2006-01-02t15:04:05", inner); err == nil {
			bad.Hint = "run_at " + t.Format("2006-01-02T15:04:05")
		}
		return bad
	}
	if inner, ok := within(lower, "cron("); ok {
		bad := &SyntaxError{Msg: "is an AWS cron expression (weekdays from 1, a year at the end)"}
		if w := strings.Fields(inner); len(w) == 6 {
			bad.Hint = translate(w[:5], w[5])
		}
		return bad
	}
	if len(words) == 7 && strings.Trim(words[6], "0123456789*?,-/") == "" {
		return &SyntaxError{Msg: "has 7 fields, as Quartz writes it (weekdays from 1, a year at the end)",
			Hint: translate(words[:6], words[6])}
	}
	if len(words) != 6 {
		return nil
	}
	switch first, _, _ := strings.Cut(words[5], "-"); {
	case isYear(first):
		return &SyntaxError{Msg: "ends in a year, which has no field here; use a start and an end time",
			Hint: translate(words[:5], words[5])}
	case words[2] == "?" || words[4] == "?": // hour or month here, a day field in AWS's order
		return &SyntaxError{Msg: "has its fields in the order of AWS (weekdays from 1, a year at the end)",
			Hint: translate(words[:5], words[5])}
	}
	return nil
}

// within returns what stands between prefix and a final parenthesis.
func within(s, prefix string) (string, bool) {
	inner, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, ")")
}

// isYear reports whether s is one of the years that Quartz and AWS allow.
func isYear(s string) bool {
	y, ok := number(s)
	return ok && y >= 1970 && y <= 2199
}

// translate writes Quartz or AWS fields, the weekday last, as ours. A year becomes a start and an
// end time. It returns "" when the result would not parse or the year says something that two
// times cannot.
func translate(fields []string, year string) string {
	between := ""
	if year != "*" && year != "?" {
		from, to, ranged := strings.Cut(year, "-")
		if !ranged {
			to = from
		}
		if !isYear(from) || !isYear(to) || from > to {
			return ""
		}
		between = fmt.Sprintf(" with start_time %s-01-01T00:00:00 and end_time %s-12-31T23:59:59", from, to)
	}
	out := append([]string(nil), fields...)
	last := len(out) - 1
	dow, ok := shiftWeekdays(out[last])
	if !ok {
		return ""
	}
	out[last] = dow
	s := strings.Join(out, " ")
	if _, err := read(s); err != nil {
		return ""
	}
	return strconv.Quote(s) + between
}

// shiftWeekdays lowers the weekday numbers of a field (1 is Sunday) by one. Numbers after # and /
// are not weekdays.
func shiftWeekdays(s string) (string, bool) {
	if strings.EqualFold(s, "L") {
		return "6", true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		isWeekday := i == 0 || s[i-1] == ',' || s[i-1] == '-'
		if c < '0' || c > '9' || !isWeekday {
			b.WriteByte(c)
			continue
		}
		if c < '1' || c > '7' {
			return "", false
		}
		b.WriteByte(c - 1)
	}
	return b.String(), true
}

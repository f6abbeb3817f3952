package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxExpression is the longest expression that Parse reads, in bytes, and MaxExpressions is how
// many it reads at most.
const (
	MaxExpression  = 512
	MaxExpressions = 20
)

// expression is what Parse and Describe have in common: an expression taken apart, before a
// seed and a zone are applied.
type expression struct {
	text   string         // as given
	line   int            // among several, from 1; else 0
	zone   string         // from CRON_TZ= or TZ=, as written; "" when there was none
	loc    *time.Location // the same, loaded
	reboot bool
	every  time.Duration // of @every, or 0
	six    bool          // a second field was written
	second, minute, hour,
	dom, month, dow field
}

// Parse reads a schedule expression:
//
//   - 5 fields: minute hour day-of-month month day-of-week, or 6 with seconds first. A field is a
//     list of numbers, ranges and steps (`*`, `5`, `1-5`, `*/15`, `10-40/10`, `5/15` for
//     5-59/15); months and weekdays have three-letter names in any case; Sunday is 0 or 7.
//   - Day-of-month also takes L (the last day), L-n, nW (the weekday nearest day n; 31W only in
//     months of 31 days) and LW; day-of-week takes 5L (the last Friday) and 5#3 (the third);
//     both take ?.
//   - H (as in Jenkins: H, H/15, H(0-29), H(0-29)/10) and ~ (as in OpenBSD: ~, 0~30) choose a
//     value that depends on Options.Seed alone. Unless a range is given they choose a
//     day-of-month from 1 to 28.
//   - @yearly @annually @monthly @weekly @daily @midnight @hourly.
//   - `@every D`, D as in [ParseInterval], anchored at the Unix epoch. A caller that has a start
//     time uses [IntervalOf] and [Every].
//   - @reboot: the error is [ErrReboot].
//
// A prefix `CRON_TZ=Zone ` or `TZ=Zone ` sets the zone. Day-of-month and day-of-week are ORed,
// unless one begins with `*` or is `?`: then they are ANDed. Errors are *SyntaxError, apart from
// ErrReboot and an unknown policy in o. An expression whose date never comes is refused.
//
// Several expressions may be given, one a line, at most [MaxExpressions]; blank lines count for
// nothing. The schedule is their union: an instant that two of them name comes once. @every,
// @reboot and CRON_TZ= stand alone.
func Parse(expr string, o Options) (Schedule, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	all, err := readLines(expr)
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		switch e := all[0]; {
		case e.reboot:
			return nil, ErrReboot
		case e.every > 0:
			return Every(e.every, time.Unix(0, 0).UTC()), nil
		}
	}
	union := make(union, len(all))
	for i := range all {
		if union[i], err = all[i].clock(o); err != nil {
			return nil, err
		}
	}
	if len(union) == 1 {
		return union[0], nil
	}
	return union, nil
}

// check refuses an unknown policy.
func (o Options) check() error {
	switch o.Gap {
	case "", GapRunAfter, GapSkip:
	default:
		return fmt.Errorf("dst_gap %q: must be RUN_AFTER or SKIP", o.Gap)
	}
	switch o.Overlap {
	case OverlapDefault, OverlapFirst, OverlapSecond, OverlapBoth:
	default:
		return fmt.Errorf("dst_overlap %q: must be FIRST, SECOND or BOTH, or empty", o.Overlap)
	}
	return nil
}

// clock applies a seed, a zone and the policies. It refuses a date that never comes.
func (e *expression) clock(o Options) (*clock, error) {
	w := e.wall(o.Seed)
	if !w.fires() {
		return nil, &SyntaxError{Expr: e.text, Line: e.line, Field: e.dom.form.name, Value: e.dom.text,
			Msg: fmt.Sprintf("no such day ever comes in month %q with day-of-week %q, so this would never run", e.month.text, e.dow.text)}
	}
	loc := o.Location
	if e.loc != nil {
		loc = e.loc
	}
	if loc == nil {
		loc = time.UTC
	}
	return &clock{
		wall:    w,
		loc:     loc,
		elapsed: e.minute.star() || e.hour.star(),
		gap:     o.Gap,
		overlap: o.Overlap,
		horizon: horizon,
	}, nil
}

// IntervalOf returns the D of an `@every D` expression, so that the caller can anchor it with
// [Every]. ok is false when expr is anything else, or wrong.
func IntervalOf(expr string) (d time.Duration, ok bool) {
	all, err := readLines(expr)
	if err != nil || len(all) > 1 {
		return 0, false
	}
	return all[0].every, all[0].every > 0
}

// maxText bounds the text of several expressions, blank lines included.
const maxText = 2 * MaxExpressions * (MaxExpression + 2)

// readLines takes one expression or several apart. Its error is nil or a *SyntaxError.
func readLines(text string) ([]expression, error) {
	whole := func(format string, args ...any) error {
		return &SyntaxError{Expr: text[:min(len(text), MaxExpression)], Msg: fmt.Sprintf(format, args...)}
	}
	if len(text) > maxText {
		return nil, whole("has %d bytes, the limit is %d expressions of %d", len(text), MaxExpressions, MaxExpression)
	}
	type line struct {
		text   string
		number int
	}
	var lines []line
	number := 0
	for s := range strings.SplitSeq(text, "\n") {
		number++
		if s = strings.TrimSuffix(s, "\r"); strings.Trim(s, " \t") != "" {
			lines = append(lines, line{s, number})
		}
	}
	switch {
	case len(lines) == 0:
		lines = []line{{"", 1}}
	case len(lines) > MaxExpressions:
		return nil, whole("has %d expressions, one a line; the limit is %d", len(lines), MaxExpressions)
	}
	all := make([]expression, len(lines))
	for i, l := range lines {
		e, err := read(l.text)
		bad := &SyntaxError{}
		switch {
		case err != nil:
			bad = err
		case len(lines) == 1:
		case e.reboot:
			bad.Msg = "@reboot stands alone: make a recurring task of its own"
		case e.every > 0:
			bad.Msg = "@every stands alone: make a recurring task of its own, or write fields such as */15"
		case e.loc != nil:
			bad.Field, bad.Value, bad.Msg = "CRON_TZ", e.zone, "several expressions share one zone; use time_zone"
		}
		if len(lines) > 1 {
			bad.Line = l.number
			e.line = l.number
		}
		if bad.Msg != "" {
			bad.Expr = l.text[:min(len(l.text), MaxExpression)]
			return nil, bad
		}
		all[i] = e
	}
	return all, nil
}

// read takes one expression apart.
func read(expr string) (expression, *SyntaxError) {
	e, bad := readFields(expr)
	e.text = expr
	return e, bad
}

func readFields(expr string) (e expression, bad *SyntaxError) {
	switch {
	case len(expr) > MaxExpression:
		return e, &SyntaxError{Msg: fmt.Sprintf("has %d bytes, the limit is %d", len(expr), MaxExpression)}
	case !utf8.ValidString(expr):
		return e, &SyntaxError{Msg: "is not valid UTF-8"}
	}
	if i := strings.IndexFunc(expr, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }); i >= 0 {
		return e, &SyntaxError{Msg: fmt.Sprintf("has a control character (%q) at byte %d", expr[i], i)}
	}
	rest, bad := e.readZone(strings.Trim(expr, " \t"))
	if bad != nil {
		return e, bad
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 {
		return e, &SyntaxError{Msg: "is empty; it needs 5 fields: minute hour day-of-month month day-of-week"}
	}
	if words[0][0] == '@' {
		fields, bad := e.readNickname(words)
		if bad != nil || fields == "" {
			return e, bad
		}
		words = strings.Fields(fields)
	}
	if bad := foreign(rest, words); bad != nil {
		return e, bad
	}
	switch len(words) {
	case 5:
		words = append([]string{"0"}, words...)
	case 6:
		e.six = true
	default:
		has := fmt.Sprintf("has %d fields", len(words))
		if len(words) == 1 {
			has = "has 1 field"
		}
		return e, &SyntaxError{Msg: has + "; it needs 5 (minute hour day-of-month month day-of-week), or 6 with seconds first"}
	}
	for i, f := range []struct {
		form *form
		to   *field
	}{
		{&formSecond, &e.second}, {&formMinute, &e.minute}, {&formHour, &e.hour},
		{&formDom, &e.dom}, {&formMonth, &e.month}, {&formDow, &e.dow},
	} {
		if *f.to, bad = f.form.parse(words[i]); bad != nil {
			return e, bad
		}
	}
	return e, nil
}

// readZone takes a CRON_TZ= or TZ= prefix off.
func (e *expression) readZone(s string) (rest string, bad *SyntaxError) {
	name, found := strings.CutPrefix(s, "CRON_TZ=")
	if !found {
		if name, found = strings.CutPrefix(s, "TZ="); !found {
			return s, nil
		}
	}
	if i := strings.IndexAny(name, " \t"); i >= 0 {
		name, rest = name[:i], name[i:]
	}
	loc, err := LoadLocation(name)
	if name == "" {
		err = &ZoneError{Msg: "is empty; it needs a name such as Europe/Berlin"}
	}
	if err != nil {
		bad := &SyntaxError{Field: "CRON_TZ", Value: name, Msg: err.Error()}
		var ze *ZoneError
		if errors.As(err, &ze) {
			bad.Msg, bad.Hint = ze.Msg, ze.Hint
		}
		return "", bad
	}
	e.zone, e.loc = name, loc
	return strings.Trim(rest, " \t"), nil
}

// nicknames are the @ forms of crontab(5) that stand for fields.
func nickname(name string) string {
	switch name {
	case "@yearly", "@annually":
		return "0 0 1 1 *"
	case "@monthly":
		return "0 0 1 * *"
	case "@weekly":
		return "0 0 * * 0"
	case "@daily", "@midnight":
		return "0 0 * * *"
	case "@hourly":
		return "0 * * * *"
	}
	return ""
}

// readNickname reads an @ form. It returns the fields it stands for, or "" when it set e.every
// or e.reboot.
func (e *expression) readNickname(words []string) (fields string, bad *SyntaxError) {
	const known = "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @reboot, or @every with an interval"
	name := strings.ToLower(words[0])
	if name == "@every" {
		if len(words) != 2 {
			return "", &SyntaxError{Field: "interval", Value: strings.Join(words[1:], " "), Msg: "needs one interval", Hint: "@every 90s"}
		}
		d, err := ParseInterval(words[1])
		if err != nil {
			return "", &SyntaxError{Field: "interval", Value: words[1], Msg: err.Error()}
		}
		e.every = d
		return "", nil
	}
	fields = nickname(name)
	switch {
	case name != "@reboot" && fields == "":
		return "", &SyntaxError{Msg: fmt.Sprintf("%q is not known; it must be %s", words[0], known)}
	case len(words) > 1:
		return "", &SyntaxError{Msg: fmt.Sprintf("%s takes nothing after it", name)}
	}
	e.reboot = name == "@reboot"
	return fields, nil
}

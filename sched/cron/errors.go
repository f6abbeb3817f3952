package cron

import (
	"errors"
	"fmt"
)

// ErrReboot is what Parse returns for @reboot: it is a valid expression, but no clock decides
// when it fires, so the caller does.
var ErrReboot = errors.New("@reboot has no instants: it fires once after each boot")

// SyntaxError says which part of an expression or a rule is wrong and what would be right.
type SyntaxError struct {
	Expr  string // the whole expression as given, of several the wrong one, cut to MaxExpression bytes; or the rule, cut to MaxRule
	Rule  bool   // Expr is an RRULE
	Line  int    // of several expressions the line of the wrong one, from 1; else 0
	Field string // "second", "minute", "hour", "day-of-month", "month", "day-of-week", "CRON_TZ", "interval", a part of a rule such as "BYDAY", or "" for the whole
	Value string // the offending part of the field
	Msg   string // what is wrong, or what would be right
	Hint  string // what to write instead; empty when there is no sure answer
}

// Error returns one line, such as `minute field "61": must be 0-59`, `line 2: hour field "24":
// must be 0-23` or `BYDAY "6MO": …`.
func (e *SyntaxError) Error() string {
	var s string
	switch {
	case e.Field == "" && e.Rule:
		s = fmt.Sprintf("rule %q: %s", e.Expr, e.Msg)
	case e.Field == "":
		s = fmt.Sprintf("expression %q: %s", e.Expr, e.Msg)
	case e.Rule:
		s = fmt.Sprintf("%s %q: %s", e.Field, e.Value, e.Msg)
	default:
		s = fmt.Sprintf("%s field %q: %s", e.Field, e.Value, e.Msg)
	}
	if e.Line > 0 {
		s = fmt.Sprintf("line %d: %s", e.Line, s)
	}
	if e.Hint != "" {
		s += "; write " + e.Hint
	}
	return s
}

// ZoneError says why a time zone name was refused.
type ZoneError struct {
	Name string
	Msg  string
	Hint string // a name that may be meant, or empty
}

// Error returns one line, such as `time zone "Europe/Berln": unknown; did you mean Europe/Berlin?`.
func (e *ZoneError) Error() string {
	s := fmt.Sprintf("time zone %q: %s", e.Name, e.Msg)
	if e.Hint != "" {
		s += "; did you mean " + e.Hint + "?"
	}
	return s
}

package cron

import (
	"errors"
	"fmt"
)

// ErrReboot is what Parse returns for @reboot: it is a valid expression, but no clock decides
// when it fires, so the caller does.
var ErrReboot = errors.New("@reboot has no instants: it fires once after each boot")

// SyntaxError says which part of an expression is wrong and what would be right.
type SyntaxError struct {
	Expr  string // the whole expression as given, cut to MaxExpression bytes
	Field string // "second", "minute", "hour", "day-of-month", "month", "day-of-week", "CRON_TZ", "interval", or "" for the whole
	Value string // the offending part of the field
	Msg   string // what is wrong, or what would be right
	Hint  string // what to write instead; empty when there is no sure answer
}

// Error returns one line, such as `minute field "61": must be 0-59`.
func (e *SyntaxError) Error() string {
	var s string
	if e.Field == "" {
		s = fmt.Sprintf("expression %q: %s", e.Expr, e.Msg)
	} else {
		s = fmt.Sprintf("%s field %q: %s", e.Field, e.Value, e.Msg)
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

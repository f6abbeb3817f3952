package dts

import (
	"strconv"
	"strings"
)

// maxRetryOn is how many entries a list of RetryOn may have.
const maxRetryOn = 100

// Status reports whether a task is to be tried again after an HTTP answer with this status; byDefault where its policy does
// not say. A nil RetryOn says nothing.
func (o *RetryOn) Status(code int, byDefault bool) bool {
	if o == nil || o.HTTPStatus == nil {
		return byDefault
	}
	return anyRange(o.HTTPStatus, statusRange, code)
}

// Exit does the same for the exit code of a command, which is 128 + n where signal n ended it.
func (o *RetryOn) Exit(code int, byDefault bool) bool {
	if o == nil || o.ExitCodes == nil {
		return byDefault
	}
	return anyRange(o.ExitCodes, exitRange, code)
}

// Failure does the same for what is neither.
func (o *RetryOn) Failure(f RetryFailure, byDefault bool) bool {
	if o == nil || o.Errors == nil {
		return byDefault
	}
	for _, x := range o.Errors {
		if x == f {
			return true
		}
	}
	return false
}

func anyRange(list []string, parse func(string) (low, high int, ok bool), code int) bool {
	for _, s := range list {
		if low, high, ok := parse(s); ok && low <= code && code <= high {
			return true
		}
	}
	return false
}

// statusRange reads 429, 5xx or 500-504.
func statusRange(s string) (low, high int, ok bool) {
	if len(s) == 3 && strings.EqualFold(s[1:], "xx") && s[0] >= '1' && s[0] <= '5' {
		low = int(s[0]-'0') * 100
		return low, low + 99, true
	}
	return numberRange(s, 100, 599)
}

// exitRange reads 75 or 1-9.
func exitRange(s string) (low, high int, ok bool) { return numberRange(s, 1, 255) }

func numberRange(s string, least, most int) (low, high int, ok bool) {
	first, last, isRange := strings.Cut(s, "-")
	low, ok = shortNumber(first)
	high = low
	if isRange && ok {
		high, ok = shortNumber(last)
	}
	return low, high, ok && least <= low && low <= high && high <= most
}

// shortNumber reads one to three digits.
func shortNumber(s string) (int, bool) {
	if s == "" || len(s) > 3 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

func (o *RetryOn) normalize(f *fieldErrors) {
	if o == nil {
		return
	}
	for _, x := range [...]struct {
		field  string
		list   []string
		parse  func(string) (low, high int, ok bool)
		expect string
	}{
		{"retry.on.http_status", o.HTTPStatus, statusRange, "an HTTP status; use one such as 429, 5xx or 500-504"},
		{"retry.on.exit_codes", o.ExitCodes, exitRange, "the exit code of a failure; use 1 to 255, or a range such as 1-9"},
	} {
		if len(x.list) > maxRetryOn {
			f.add(x.field, "has %d entries; at most %d are allowed", len(x.list), maxRetryOn)
			continue
		}
		for i, s := range x.list {
			if _, _, ok := x.parse(s); !ok {
				f.add(x.field+"["+strconv.Itoa(i)+"]", "%q is not %s", clip(s), x.expect)
			}
		}
	}
	if len(o.Errors) > maxRetryOn {
		f.add("retry.on.errors", "has %d entries; at most %d are allowed", len(o.Errors), maxRetryOn)
		return
	}
	for i, e := range o.Errors {
		switch e {
		case FailureTimeout, FailureConnection, FailureBody:
		default:
			f.add("retry.on.errors["+strconv.Itoa(i)+"]", "%q is not known; use TIMEOUT, CONNECTION or BODY", clip(string(e)))
		}
	}
}

package dts

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	retryStatus   = regexp.MustCompile(`^[1-5]([0-9][0-9]|xx)(-[1-5][0-9][0-9])?$`)
	retryExit     = regexp.MustCompile(`^[0-9]{1,3}(-[0-9]{1,3})?$`)
	retryFailures = map[string]RetryFailure{"timeout": FailureTimeout, "connection": FailureConnection, "body": FailureBody}
)

// ParseRetryOn reads how people write a RetryOn, a list with commas: of an HTTP request 5xx, 429, 500-504, timeout,
// connection and body; of a command exit:75, exit:1-9 and timeout. What is not named is not tried again: every list
// that a target of this type can fail by is there, also when it is empty.
func ParseRetryOn(text string, target TargetType) (*RetryOn, error) {
	on := &RetryOn{Errors: []RetryFailure{}}
	sample := "exit:75, exit:1-9 or timeout"
	if target == HTTPCallback {
		on.HTTPStatus = []string{}
		sample = "5xx, 429, 500-504, timeout, connection or body"
	} else {
		on.ExitCodes = []string{}
	}
	for word := range strings.SplitSeq(strings.ToLower(text), ",") {
		word = strings.TrimSpace(word)
		code, exit := strings.CutPrefix(word, "exit:")
		failure, named := retryFailures[word]
		switch {
		case exit && !retryExit.MatchString(code):
			return nil, fmt.Errorf("%q must be an exit code, exit:75, or a range of them, exit:1-9", clip(word))
		case exit && target == HTTPCallback:
			return nil, fmt.Errorf("%s is an exit code, which only a command has; use %s", word, sample)
		case exit:
			on.ExitCodes = append(on.ExitCodes, code)
		case named && failure != FailureTimeout && target != HTTPCallback:
			return nil, fmt.Errorf("%s is a failure that only an HTTP request has; use %s", word, sample)
		case named:
			on.Errors = append(on.Errors, failure)
		case !retryStatus.MatchString(word):
			return nil, fmt.Errorf("%q is not known; use %s", clip(word), sample)
		case target != HTTPCallback:
			return nil, fmt.Errorf("%s is a status, which only an HTTP request has; use %s", word, sample)
		default:
			on.HTTPStatus = append(on.HTTPStatus, word)
		}
	}
	return on, nil
}

// Words says after which failures there is another attempt; "" where that is left to the default.
func (on *RetryOn) Words() string {
	if on == nil {
		return ""
	}
	var list []string
	add := func(words []string, before, none string) {
		switch {
		case words == nil:
		case len(words) == 0:
			list = append(list, none)
		default:
			list = append(list, before+strings.Join(words, ", "))
		}
	}
	add(on.HTTPStatus, "HTTP ", "no HTTP status")
	add(on.ExitCodes, "exit code ", "no exit code")
	var failures []string
	if on.Errors != nil {
		failures = []string{}
	}
	for _, e := range on.Errors {
		failures = append(failures, strings.ToLower(string(e)))
	}
	add(failures, "", "no other failure")
	return strings.Join(list, "; ")
}

package main

import (
	"regexp"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
)

// What --retry-on names: a status or some of them, exit codes, and the failures that are neither.
var (
	statusWord    = regexp.MustCompile(`^[1-5]([0-9][0-9]|xx)(-[1-5][0-9][0-9])?$`)
	exitWord      = regexp.MustCompile(`^[0-9]{1,3}(-[0-9]{1,3})?$`)
	failureWords  = map[string]dts.RetryFailure{"timeout": dts.FailureTimeout, "connection": dts.FailureConnection, "body": dts.FailureBody}
	retryOnSample = "5xx, 429, 500-504, timeout, connection or body for a URL, and exit:75, exit:1-9 or timeout for a command"
)

// retryFlags say how often and after which failures there is another attempt.
func retryFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "retries", Category: category, DefaultText: "2", Usage: "try again up to `N` times"},
		&cli.StringFlag{Name: "backoff", Category: category, Usage: "how long to wait before that, `B`: 10s each time; 1s..10m doubling; or the list 10s,1m,5m"},
		&cli.StringFlag{Name: "retry-on", Category: category, Usage: "try again only after the failures `F`, a list such as 5xx,429,timeout,connection,body or exit:75,timeout; default: where another attempt may help"},
	}
}

// retry reads them.
func retry(c *cli.Context, target dts.TargetType) (r dts.Retry, err error) {
	if c.IsSet("backoff") {
		if r, err = backoff(c.String("backoff")); err != nil {
			return r, err
		}
	}
	if c.IsSet("retries") {
		n := c.Int("retries")
		if n < 0 || n > 99 {
			return r, usagef("--retries: is %d; use 0 to 99", n)
		}
		r.MaxAttempts = n + 1
	}
	if c.IsSet("retry-on") {
		r.On, err = retryOn(c.String("retry-on"), target)
	}
	return r, err
}

// retryOn reads --retry-on. What it does not name is not tried again, so every list that the target can fail by is
// there, also when it is empty.
func retryOn(text string, target dts.TargetType) (*dts.RetryOn, error) {
	on := &dts.RetryOn{Errors: []dts.RetryFailure{}}
	if target == dts.HTTPCallback {
		on.HTTPStatus = []string{}
	} else {
		on.ExitCodes = []string{}
	}
	for word := range strings.SplitSeq(strings.ToLower(text), ",") {
		word = strings.TrimSpace(word)
		code, exit := strings.CutPrefix(word, "exit:")
		failure, named := failureWords[word]
		switch {
		case exit && !exitWord.MatchString(code):
			return nil, usagef("--retry-on: %q must be an exit code, exit:75, or a range of them, exit:1-9", clip(clean(word), 20))
		case exit && target != dts.Command:
			return nil, usagef("--retry-on: %s is for a command, which a URL is not", clean(word))
		case exit:
			on.ExitCodes = append(on.ExitCodes, code)
		case named && failure != dts.FailureTimeout && target == dts.Command:
			return nil, usagef("--retry-on: %s is for --url; a command has exit:N and timeout", word)
		case named:
			on.Errors = append(on.Errors, failure)
		case !statusWord.MatchString(word):
			return nil, usagef("--retry-on: %q is not known; use %s", clip(clean(word), 20), retryOnSample)
		case target == dts.Command:
			return nil, usagef("--retry-on: %s is a status, for --url; for a command write exit codes, such as exit:75", word)
		default:
			on.HTTPStatus = append(on.HTTPStatus, word)
		}
	}
	return on, nil
}

// retryOnWords says after which failures there is another attempt; "" where it is left to the default.
func retryOnWords(on *dts.RetryOn) string {
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
	return clean(strings.Join(list, "; "))
}

// retryOnFact says it in a line of a description.
func retryOnFact(on *dts.RetryOn) string {
	if words := retryOnWords(on); words != "" {
		return "after " + words
	}
	return ""
}

// backoff reads --backoff.
func backoff(text string) (dts.Retry, error) {
	r := dts.Retry{Backoff: dts.Fixed}
	list := strings.Split(text, ",")
	if low, high, ok := strings.Cut(text, ".."); ok {
		r.Backoff = dts.Exponential
		list = []string{low, high}
	} else if len(list) > 1 {
		r.Backoff = dts.List
	}
	var ms []int64
	for _, part := range list {
		d, err := parseSpan("--backoff", strings.TrimSpace(part), time.Millisecond)
		if err != nil {
			return r, err
		}
		ms = append(ms, d.Milliseconds())
	}
	switch r.Backoff {
	case dts.List:
		r.DelaysMS = ms
	case dts.Exponential:
		r.BaseDelayMS, r.MaxDelayMS = ms[0], ms[1]
	default:
		r.BaseDelayMS = ms[0]
	}
	return r, nil
}

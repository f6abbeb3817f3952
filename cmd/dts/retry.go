package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
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
		if r.On, err = dts.ParseRetryOn(c.String("retry-on"), target); err != nil {
			return r, usagef("--retry-on: %s", clean(err.Error()))
		}
	}
	return r, nil
}

// retryOnFact says after which failures there is another attempt, in a line of a description.
func retryOnFact(on *dts.RetryOn) string {
	if words := on.Words(); words != "" {
		return "after " + clean(words)
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

package main

import (
	"testing"
	"time"

	"dts"
)

func TestShownQueues(t *testing.T) {
	mail := &dts.Queue{Name: "mail", Rate: 50, PeriodSeconds: 900, Burst: 5, Concurrency: 20, Paused: true, PausedAt: ago(time.Hour), PauseNote: "the relay\x1b[2J is down",
		Retry:      &dts.Retry{MaxAttempts: 4, Backoff: dts.List, DelaysMS: []int64{1000, 60_000}, On: &dts.RetryOn{Errors: []dts.RetryFailure{dts.FailureTimeout}}},
		Retention:  &dts.Retention{Seconds: 7 * 86400, Rows: 1000, Bytes: 2 << 30},
		QueueState: dts.QueueState{Waiting: 10_000, OldestAgeSeconds: 3700.5}}
	busy := &dts.Queue{Name: "default", QueueState: dts.QueueState{Running: 12, Waiting: 3, OldestAgeSeconds: 0.4, Suggested: 15}}
	golden(t, "queues", func(a *app) {
		a.queueTable([]*dts.Queue{busy, mail, {Name: "slow", Rate: 10, PeriodSeconds: 1, Burst: 1}})
	})
	golden(t, "queue", func(a *app) {
		a.printQueue(mail)
		a.printQueue(busy)
		a.printQueue(&dts.Queue{Name: "once", Retry: &dts.Retry{MaxAttempts: 1}})
	})
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]struct {
		n      int
		period time.Duration
		bad    bool
	}{
		"10/s": {10, time.Second, false}, "100/m": {100, time.Minute, false}, "3/h": {3, time.Hour, false}, "50/15m": {50, 15 * time.Minute, false}, " 7 / d": {7, 24 * time.Hour, false},
		"none": {}, "0": {}, "": {bad: true}, "10": {bad: true}, "-1/s": {bad: true}, "x/s": {bad: true}, "1/": {bad: true}, "1/y": {bad: true}, "1/1ms": {bad: true},
	} {
		n, period, err := parseRate(text)
		if (err != nil) != want.bad || err == nil && (n != want.n || period != want.period) {
			t.Errorf("%q: %d in %s, %v", text, n, period, err)
		}
	}
}

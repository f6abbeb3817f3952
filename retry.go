package dts

import (
	"math"
	"time"
)

// Backoff is how the delay between attempts grows.
type Backoff string

const (
	Fixed       Backoff = "FIXED"       // base_delay_ms each time
	Exponential Backoff = "EXPONENTIAL" // base_delay_ms, doubled each time, up to max_delay_ms
	List        Backoff = "LIST"        // delays_ms one after the other, then the last one again
)

// Retry says how often and when to try again.
type Retry struct {
	MaxAttempts int     `json:"max_attempts,omitempty" doc:"1 to 100; 1 means no retry"`
	Backoff     Backoff `json:"backoff,omitempty" enum:"FIXED,EXPONENTIAL,LIST"`
	BaseDelayMS int64   `json:"base_delay_ms,omitempty" doc:"default: 1000"`
	MaxDelayMS  int64   `json:"max_delay_ms,omitempty" doc:"default: 3600000, an hour"`
	DelaysMS    []int64 `json:"delays_ms,omitempty" doc:"for LIST"`
	Jitter      *bool   `json:"jitter,omitempty" doc:"multiply each delay by a random factor from 0.5 to 1.5; default: true"`

	On *RetryOn `json:"on,omitempty" doc:"which failures to try again; default: those where another attempt may help"`
}

// RetryOn says after which failures there is another attempt. A list that is there decides alone about its kind of
// failure, also when it is empty; one that is absent leaves it to the default.
type RetryOn struct {
	HTTPStatus []string       `json:"http_status,omitzero" doc:"such as 429, 5xx or 500-504; default: 408, 425, 429, 5xx, and a 2xx that expect_status does not have"`
	ExitCodes  []string       `json:"exit_codes,omitzero" doc:"such as 75 or 1-9, 128 + n for signal n; default: every one but 0"`
	Errors     []RetryFailure `json:"errors,omitzero" enum:"TIMEOUT,CONNECTION,BODY" doc:"default: all of them"`
}

// RetryFailure is a failure that is neither a status nor an exit code.
type RetryFailure string

const (
	FailureTimeout    RetryFailure = "TIMEOUT"    // longer than timeout_seconds
	FailureConnection RetryFailure = "CONNECTION" // no connection, or it broke
	FailureBody       RetryFailure = "BODY"       // the answer's body is not what expect_body asks for
)

// Delay returns how long to wait after attempt number n (1 is the first) failed. r is uniform in [0, 1)
// and supplies the jitter. A target's Retry-After raises the delay to at least after.
func (p *Retry) Delay(n int, r float64, after time.Duration) time.Duration {
	limit := float64(p.MaxDelayMS)
	var ms float64
	switch p.Backoff {
	case Fixed:
		ms = float64(p.BaseDelayMS)
	case List:
		ms = float64(p.DelaysMS[min(n, len(p.DelaysMS))-1])
		limit = math.Inf(1)
	default:
		ms = float64(p.BaseDelayMS) * math.Pow(2, float64(n-1))
	}
	ms = min(ms, limit)
	if p.Jitter == nil || *p.Jitter {
		ms *= 0.5 + r
	}
	d := time.Duration(min(ms, float64(maxDelay.Milliseconds())) * float64(time.Millisecond))
	return max(d, min(after, maxDelay))
}

const maxDelay = 7 * 24 * time.Hour

func (p *Retry) isZero() bool {
	return p.MaxAttempts == 0 && p.Backoff == "" && p.BaseDelayMS == 0 && p.MaxDelayMS == 0 && p.DelaysMS == nil && p.Jitter == nil && p.On == nil
}

func (p *Retry) normalize(f *fieldErrors, d Delivery) {
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 3
		if p.Backoff == List && len(p.DelaysMS) > 0 {
			p.MaxAttempts = len(p.DelaysMS) + 1
		}
		if d == AtMostOnce {
			p.MaxAttempts = 1
		}
	}
	if p.Backoff == "" {
		p.Backoff = Exponential
	}
	if p.BaseDelayMS == 0 {
		p.BaseDelayMS = 1000
	}
	if p.MaxDelayMS == 0 {
		p.MaxDelayMS = max(time.Hour.Milliseconds(), p.BaseDelayMS)
	}
	switch {
	case p.MaxAttempts < 1 || p.MaxAttempts > 100:
		f.add("retry.max_attempts", "is %d; use 1 (no retry) to 100", p.MaxAttempts)
	case p.MaxAttempts > 1 && d == AtMostOnce:
		f.add("retry.max_attempts", "must be 1 with delivery AT_MOST_ONCE: a second attempt could run it twice")
	}
	switch p.Backoff {
	case Fixed, Exponential:
		if len(p.DelaysMS) > 0 {
			f.add("retry.delays_ms", "needs backoff LIST")
		}
	case List:
		if len(p.DelaysMS) == 0 || len(p.DelaysMS) > 100 {
			f.add("retry.delays_ms", "has %d entries; LIST needs 1 to 100", len(p.DelaysMS))
		}
	default:
		f.add("retry.backoff", "%q is not known; use FIXED, EXPONENTIAL or LIST", clip(string(p.Backoff)))
	}
	for _, ms := range append([]int64{p.BaseDelayMS, p.MaxDelayMS}, p.DelaysMS...) {
		if ms < 0 || ms > maxDelay.Milliseconds() {
			f.add("retry", "a delay of %d ms is out of range; use 0 to %d (7 days)", ms, maxDelay.Milliseconds())
			break
		}
	}
	if p.MaxDelayMS < p.BaseDelayMS {
		f.add("retry.max_delay_ms", "is smaller than base_delay_ms")
	}
	p.On.normalize(f)
}

package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dts"
)

// errTimeLimit is the cause with which an attempt's own timeout ends its context.
var errTimeLimit = errors.New("the task's timeout has passed")

func failed(retryable bool, format string, args ...any) dts.Outcome {
	return dts.Outcome{State: dts.AttemptFailed, Retryable: retryable, Error: fmt.Sprintf(format, args...)}
}

// stopped is the outcome of an attempt whose context is done. late says what did not happen in time; its
// %s is the task's timeout.
func stopped(ctx context.Context, job *dts.Job, late string) dts.Outcome {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeLimit):
		return dts.Outcome{State: dts.AttemptTimedOut, Retryable: job.Task.Retry.On.Failure(dts.FailureTimeout, true), Error: fmt.Sprintf(late, short(job.Task.Timeout()))}
	case errors.Is(cause, dts.ErrRunCancelled):
		return dts.Outcome{State: dts.AttemptCancelled, Error: dts.ErrRunCancelled.Message}
	case errors.Is(cause, dts.ErrRunReplaced):
		return dts.Outcome{State: dts.AttemptCancelled, Error: dts.ErrRunReplaced.Message}
	default:
		return dts.Outcome{State: dts.AttemptLost, Retryable: true, Error: dts.ErrRunLost.Message}
	}
}

// short writes a duration without the zero units at its end: 5m, not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// clip shortens a text that is not ours before it becomes part of an error.
func clip(s string) string {
	const n = 200
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

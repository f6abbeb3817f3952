//go:build !linux

package timer

import (
	"errors"
	"fmt"
	"log/slog"
)

// newSystem reports that only Linux has a timerfd.
func newSystem(*slog.Logger) (Timer, error) {
	return nil, fmt.Errorf("create timerfd: %w", errors.ErrUnsupported)
}

//go:build !linux

package main

import (
	"errors"
	"fmt"
	"runtime"
)

// usageOf needs /proc. Its error wraps errors.ErrUnsupported.
func usageOf(int) (processUsage, error) {
	return processUsage{}, fmt.Errorf("the memory and CPU time of a process cannot be measured on %s, only on Linux: %w", runtime.GOOS, errors.ErrUnsupported)
}

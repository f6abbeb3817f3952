//go:build !linux

package main

import (
	"fmt"
	"runtime"
)

// usageOf needs /proc.
func usageOf(int) (processUsage, error) {
	return processUsage{}, fmt.Errorf("the memory and CPU time of a process cannot be measured on %s, only on Linux", runtime.GOOS)
}

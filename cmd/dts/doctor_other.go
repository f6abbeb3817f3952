//go:build !linux

package main

import "errors"

// limitsOf is not known here.
func limitsOf(int) (processLimits, error) { return processLimits{}, errors.ErrUnsupported }

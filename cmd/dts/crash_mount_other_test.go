//go:build !linux

package main_test

import (
	"errors"
	"testing"
)

// mountSmall is for Linux alone.
func mountSmall(*testing.T, string, string) error {
	return errors.New("there is no tmpfs on this system")
}

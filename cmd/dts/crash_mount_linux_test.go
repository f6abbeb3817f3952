package main_test

import (
	"fmt"
	"syscall"
	"testing"
)

// mountSmall mounts a file system in memory, of the size that a tmpfs understands, until the test ends.
func mountSmall(t *testing.T, dir, size string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		return fmt.Errorf("mounting a tmpfs needs root: %w", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return nil
}

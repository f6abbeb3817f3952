//go:build !linux

package rqlitetest

import "os/exec"

// starter starts processes. Here they outlive a test that is killed.
type starter struct{}

func newStarter() *starter { return &starter{} }

func (*starter) start(cmd *exec.Cmd) error { return cmd.Start() }

func (*starter) end() {}

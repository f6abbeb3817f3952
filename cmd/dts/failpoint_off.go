//go:build !failpoints

package main

// failpoint is nil: only a build for crash tests dies at named points.
func failpoint() (func(name string), error) { return nil, nil }

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"dts"
	"dts/web/client"
)

// Exit codes. They are part of what scripts rely on: see docs/guide.md.
const (
	exitOK          = 0
	exitFailed      = 1 // it failed, there is no such thing, or its state does not allow it
	exitUsage       = 2 // bad input
	exitNoServer    = 3 // nothing answers at the socket or the address
	exitInterrupted = 130
)

// exitError is an error with its exit code. With an empty text the code alone is meant.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// usagef makes the error for bad input.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...)}
}

// failf makes the error for what cannot be done.
func failf(format string, args ...any) error {
	return &exitError{exitFailed, fmt.Sprintf(format, args...)}
}

// exitOnly ends the program with a code when all has been said.
func exitOnly(code int) error { return &exitError{code: code} }

// verdict returns the line to print for an error, "" for none, and the exit code.
func verdict(err error) (string, int) {
	if err == nil {
		return "", exitOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.text, e.code
	}
	if errors.Is(err, context.Canceled) {
		return "", exitInterrupted
	}
	if errors.Is(err, client.ErrNoServer) {
		return err.Error() + "; start one with: dts serve", exitNoServer
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		text := err.Error()
		if errors.Is(err, os.ErrPermission) {
			text += "; only the server's user, root and, where it is shared, its group may use its socket"
		}
		return text, exitNoServer
	}
	code := exitFailed
	e, ok := errors.AsType[*dts.Error](err)
	if !ok {
		return err.Error(), code
	}
	if e.Code == dts.ErrInvalid || e.Code == dts.ErrTooLarge {
		code = exitUsage
	}
	if len(e.Fields) == 0 {
		return err.Error(), code
	}
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.Field + ": " + f.Message
		if f.Field == "" {
			parts[i] = f.Message
		}
	}
	return strings.Join(parts, "; "), code
}

// oneLine makes a text one line without control characters.
func oneLine(s string) string { return clean(strings.Join(strings.Fields(s), " ")) }

package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, " Yes \r\n": true, "n\n": false, "\n": false, "": false, "yes please\n": false} {
		a := &app{in: strings.NewReader(answer), out: io.Discard, asks: true}
		if got, err := a.confirm(t.Context(), "Sure?"); got != want || err != nil {
			t.Errorf("%q: %v, %v, want %v", answer, got, err, want)
		}
	}
}

// Ctrl-C at a question ends the program, although nobody answers.
func TestConfirmInterrupted(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	a := &app{in: in, out: io.Discard, asks: true}
	if yes, err := a.confirm(ctx, "Sure?"); yes || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", yes, err)
	}
}

package dts

import (
	"strings"
	"testing"
)

func TestParseRetryOn(t *testing.T) {
	for _, tt := range []struct {
		target      TargetType
		text, words string // words that begin with "!" are part of an error
	}{
		{HTTPCallback, "5xx,429, TIMEOUT", "HTTP 5xx, 429; timeout"},
		{HTTPCallback, "500-504", "HTTP 500-504; no other failure"},
		{HTTPCallback, "connection,body", "no HTTP status; connection, body"},
		{Command, "exit:75,exit:1-9,timeout", "exit code 75, 1-9; timeout"},
		{Command, "timeout", "no exit code; timeout"},
		{Command, "5xx", "!is a status, which only an HTTP request has; use exit:75"},
		{Command, "body", "!is a failure that only an HTTP request has"},
		{HTTPCallback, "exit:1", "!which only a command has"},
		{HTTPCallback, "", "!is not known; use 5xx"},
		{HTTPCallback, "700", "!is not known"},
		{Command, "exit:", "!must be an exit code"},
		{Command, "exit:x", "!must be an exit code"},
	} {
		on, err := ParseRetryOn(tt.text, tt.target)
		if want, refused := strings.CutPrefix(tt.words, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %q: %v, want an error with %q", tt.target, tt.text, err, want)
			}
			continue
		}
		if err != nil || on.Words() != tt.words {
			t.Errorf("%s %q: %q %v, want %q", tt.target, tt.text, on.Words(), err, tt.words)
		}
	}
	if words := (*RetryOn)(nil).Words(); words != "" {
		t.Errorf("the default reads %q", words)
	}
}

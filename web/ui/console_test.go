package ui

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watchConsole fails the test for whatever the browser complains about: errors in scripts, files that are
// missing, and what the content security policy blocked. The tests cause 401 and 503 on purpose.
func watchConsole(t *testing.T, ctx context.Context) {
	t.Helper()
	err := chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("script failed: %v", e.ExceptionDetails)
		case *runtime.EventConsoleAPICalled:
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			text := strings.Join(words, " ")
			if e.Type == runtime.ConsoleAPICalledTypeError && !onPurpose(text) {
				t.Errorf("console: %s", text)
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && !onPurpose(e.Entry.Text) {
				t.Errorf("browser: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	})
	if err != nil {
		t.Fatalf("start the browser: %v", err)
	}
}

func onPurpose(text string) bool {
	return strings.Contains(text, "401") || strings.Contains(text, "503")
}

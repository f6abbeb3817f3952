package seldom

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		to := slog.New(slog.NewTextHandler(&out, nil))
		var l Log
		for range 2500 { // 25 s
			l.Write(t.Context(), to, slog.LevelWarn, "no", "path", "/x")
			time.Sleep(10 * time.Millisecond)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.HasSuffix(lines[0], "msg=no path=/x") || !strings.HasSuffix(lines[2], "path=/x left_out=999") {
			t.Errorf("%d lines:\n%s", len(lines), &out)
		}
	})
}

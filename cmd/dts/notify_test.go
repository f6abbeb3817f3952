package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestNotify plays systemd: it hears READY, then pings as long as the server answers on its socket, and
// none when it does not.
func TestNotify(t *testing.T) {
	dir := t.TempDir()
	addr := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	systemd, err := net.ListenUnixgram("unixgram", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", addr.Name)
	t.Setenv("WATCHDOG_USEC", strconv.Itoa(int((100 * time.Millisecond).Microseconds())))
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	hear := func(limit time.Duration) string {
		b := make([]byte, 100)
		systemd.SetReadDeadline(time.Now().Add(limit))
		n, err := systemd.Read(b)
		if err != nil {
			return ""
		}
		return string(b[:n])
	}

	socket := filepath.Join(dir, "dts.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(`{"status":"ok"}`)) })}
	go srv.Serve(l)

	ctx, stop := context.WithCancel(t.Context())
	n := newNotifier(slog.New(slog.DiscardHandler), socket)
	n.ready(ctx)
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := hear(10 * time.Second); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	srv.Close()
	for hear(300*time.Millisecond) != "" { // what was on its way
		if t.Context().Err() != nil {
			break
		}
	}
	if got := hear(300 * time.Millisecond); got != "" {
		t.Errorf("%q although the server does not answer", got)
	}
	n.wait(stop)
}

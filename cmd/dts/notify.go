package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"dts/web/client"
)

// notifier tells systemd how the server is (sd_notify(3)). Without systemd it does nothing.
type notifier struct {
	log    *slog.Logger
	socket string
	pings  sync.WaitGroup
}

func newNotifier(log *slog.Logger, socket string) *notifier {
	return &notifier{log: log, socket: socket}
}

// ready says that the server answers, and keeps the watchdog quiet from now on, as long as it does.
func (n *notifier) ready(ctx context.Context) {
	notify(n.log, daemon.SdNotifyReady)
	period, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("the watchdog's variables could not be read", "error", err)
	}
	if err != nil || period == 0 {
		return
	}
	n.pings.Go(func() { n.watch(ctx, period/2) })
}

// wait ends the pings.
func (n *notifier) wait(stop func()) {
	stop()
	n.pings.Wait()
}

// watch asks the server's own socket: an answer shows that it accepts, routes and replies. While the server
// stops, its drain limit decides and not the watchdog, so the pings go on with systemd's stop timeout.
func (n *notifier) watch(ctx context.Context, every time.Duration) {
	cl, err := client.New(client.Options{Socket: n.socket, Timeout: every})
	if err != nil {
		n.log.Error("watchdog", "error", err)
		return
	}
	defer cl.Close()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := n.healthy(ctx, cl, every); err == nil {
			notify(n.log, daemon.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			n.log.Error("no word to the watchdog", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (n *notifier) healthy(ctx context.Context, cl *client.Client, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := cl.Health(ctx); err != nil {
		return fmt.Errorf("the server does not answer on its socket: %w", err)
	}
	return nil
}

func notifyStopping(log *slog.Logger) { notify(log, daemon.SdNotifyStopping) }

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd could not be told", "state", state, "error", err)
	}
}

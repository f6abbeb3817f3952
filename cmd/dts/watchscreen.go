package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// What a terminal obeys: see ctlseqs of xterm.
const (
	screenOn   = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the other screen, without a cursor, and what is too wide is cut off
	screenOff  = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenHome = "\x1b[H"
	emptyLine  = "\x1b[2K"
	screenRest = "\x1b[J" // empties what is below the cursor
)

// watchScreen shows what it sees until q, Ctrl-C or a signal, and leaves the terminal as it was.
func (a *app) watchScreen(ctx context.Context, w *watcher, seen *watched, every time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys, restore, err := a.keys()
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	defer restore()
	fmt.Fprint(a.out, screenOn)
	defer fmt.Fprint(a.out, screenOff)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)

	looks := make(chan look, 1)
	go w.lookOn(ctx, every, looks)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	lost := ""
	for {
		a.draw(seen, lost)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-keys:
			return nil
		case k := <-looks:
			if k.err == nil {
				seen, lost = k.seen.after(seen), ""
			} else {
				text, _ := verdict(hangs(k.err))
				lost = "since " + clock(seen.At, a.loc) + ": " + text
			}
		case <-resized:
		case <-tick.C:
		}
	}
}

// look is what came of one.
type look struct {
	seen *watched
	err  error
}

// lookOn looks again and again, until ctx is done. It does not hold up who draws: a server that hangs answers late.
func (w *watcher) lookOn(ctx context.Context, every time.Duration, looks chan<- look) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		seen, err := w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case looks <- look{seen, err}:
		}
	}
}

// draw paints over what was there.
func (a *app) draw(seen *watched, lost string) {
	columns, rows := 80, 24
	if f, ok := a.out.(*os.File); ok {
		if c, r, err := term.GetSize(int(f.Fd())); err == nil && c > 0 && r > 0 {
			columns, rows = c, r
		}
	}
	var b strings.Builder
	b.WriteString(screenHome)
	for i, line := range a.frame(seen, lost, columns, rows) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(emptyLine + line) // emptied first: behind a full line the cursor still stands on its last letter
	}
	b.WriteString(screenRest)
	fmt.Fprint(a.out, b.String())
}

// keys makes a terminal pass on each key as it is hit, and sends when one is hit that ends the screen. Where the keys are not
// those of a terminal there are none.
func (a *app) keys() (ends <-chan struct{}, restore func(), err error) {
	in, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, func() {}, nil
	}
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, nil, err
	}
	hit := make(chan struct{}, 1)
	go func() {
		b := make([]byte, 64)
		for {
			n, err := in.Read(b)
			if err != nil {
				return
			}
			if strings.ContainsAny(string(b[:n]), "qQ\x03\x04") { // raw: Ctrl-C and Ctrl-D are keys
				hit <- struct{}{}
				return
			}
		}
	}()
	return hit, func() { _ = term.Restore(int(in.Fd()), old) }, nil
}

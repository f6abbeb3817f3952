package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"dts/store"
	"dts/store/rqlite"
)

func (a *app) copyCommand() *cli.Command {
	const certificates = "Certificates"
	return &cli.Command{
		Name: "copy", Usage: "copy everything to another database", UsageText: "dts copy --from PLACE --to PLACE [options]", Category: "Without a server",
		Description: `Carries tasks, what ran, tokens and all else over, and compares both sides by count and checksum. A PLACE is
sqlite:PATH, a data directory or the dts.db in it, or rqlite:URL,URL…, addresses of one cluster.

No server may run on either side, and the destination must hold no task. A copy that was interrupted goes on
when it is run again; until one is complete no server starts on the destination. Afterwards run servers on one
of the two only: on both, every task would run twice.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", EnvVars: []string{"DTS_COPY_FROM"}, Usage: "the `PLACE` to copy; it is only read, but its schema is brought up to date first"},
			&cli.StringFlag{Name: "to", EnvVars: []string{"DTS_COPY_TO"}, Usage: "the `PLACE` to copy to; a data directory is made if it is not there"},
			&cli.BoolFlag{Name: "force", Usage: "do not watch rqlite for servers that may still run; for when all were killed"},
			jsonFlag(),
			&cli.StringFlag{Name: "rqlite-ca", Category: certificates, EnvVars: []string{"DTS_RQLITE_CA"}, Usage: "a PEM `FILE` with the authorities that sign the certificates of rqlite; default: the system's"},
			&cli.StringFlag{Name: "rqlite-cert", Category: certificates, EnvVars: []string{"DTS_RQLITE_CERT"}, Usage: "a PEM `FILE` with the certificate that rqlite is shown"},
			&cli.StringFlag{Name: "rqlite-key", Category: certificates, EnvVars: []string{"DTS_RQLITE_KEY"}, Usage: "a PEM `FILE` with the key of that certificate"},
		},
		Action: a.copy,
	}
}

// copied is what `dts copy --json` prints.
type copied struct {
	From    string              `json:"from"`
	To      string              `json:"to"`
	Rows    int64               `json:"rows"`
	Seconds float64             `json:"seconds"`
	Tables  []store.CopiedTable `json:"tables"`
}

func (a *app) copy(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	certificates := rqlite.Options{CAFile: c.String("rqlite-ca"), CertFile: c.String("rqlite-cert"), KeyFile: c.String("rqlite-key")}
	from, err := parsePlace("--from", c.String("from"), certificates)
	if err != nil {
		return err
	}
	to, err := parsePlace("--to", c.String("to"), certificates)
	if err != nil {
		return err
	}
	if from.same(to) {
		return usagef("--from and --to are the same")
	}
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	// A source that cannot be read, or is in use, is known before the destination is made, and whether the
	// destination will do before the source's schema is brought up to date.
	if err := from.readable(); err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	target, err := to.open(c.Context, c.Bool("force"), log)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer target.close()
	if err := store.CopyFits(c.Context, target); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	source, err := from.open(c.Context, c.Bool("force"), log)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer source.close()
	result, err := a.doCopy(c.Context, source, target, copied{From: from.String(), To: to.String()}, c.Bool("json"))
	if err = errors.Join(err, target.close()); err != nil {
		if errors.Is(err, context.Canceled) {
			a.notef("the copy is not complete; the same command goes on with it")
		}
		return err
	}
	if c.Bool("json") {
		return a.printJSON(result)
	}
	a.printCopied(result)
	return nil
}

// doCopy copies, and shows how far it is.
func (a *app) doCopy(ctx context.Context, source, target store.Backend, result copied, quiet bool) (copied, error) {
	bar := &copyBar{app: a}
	defer bar.clear()
	o := store.CopyOptions{From: source, To: target, Source: result.From, Now: a.now(), Done: func(t store.CopiedTable) {
		bar.clear()
		result.Tables = append(result.Tables, t)
		result.Rows += t.Rows
		if !quiet {
			a.printCopiedTable(t)
		}
	}}
	if a.terminal && !quiet {
		o.Progress = bar.show
	}
	start := a.now()
	err := store.Copy(ctx, o)
	result.Seconds = a.now().Sub(start).Seconds()
	return result, err
}

func (a *app) printCopiedTable(t store.CopiedTable) {
	a.printf("%-16s  %10d rows  %s\n", t.Name, t.Rows, a.dim(t.SHA256[:16]))
}

func (a *app) printCopied(r copied) {
	rate := ""
	if r.Seconds >= 1 {
		rate = fmt.Sprintf(" in %s, %.0f a second", span(time.Duration(r.Seconds*float64(time.Second))), float64(r.Rows)/r.Seconds)
	}
	a.printf("Copied %d rows%s. Both sides have the same, by count and checksum.\n", r.Rows, rate)
	a.notef("run servers on %s alone now: %s still holds every task, and on both each would run twice", r.To, r.From)
}

// copyBar shows how far a large table is, where someone looks.
type copyBar struct {
	app *app
	now store.CopyProgress // what bar is for
	bar *progressbar.ProgressBar
}

// copyBarFrom is from how many rows on a table is worth a bar.
const copyBarFrom = 5000

func (b *copyBar) show(p store.CopyProgress) {
	if b.bar == nil || b.now.Table != p.Table || b.now.Compare != p.Compare {
		b.clear()
		if p.Of < copyBarFrom {
			return
		}
		what := "copying "
		if p.Compare {
			what = "comparing "
		}
		b.bar = progressbar.NewOptions64(p.Of, progressbar.OptionSetWriter(b.app.err), progressbar.OptionSetDescription(what+p.Table),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	b.now = p
	_ = b.bar.Set64(p.Rows) // a bar that cannot be drawn is no reason to stop
}

func (b *copyBar) clear() {
	if b.bar != nil {
		_ = b.bar.Finish()
		b.bar = nil
	}
}

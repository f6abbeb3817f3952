package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
)

func (a *app) retentionCommand() *cli.Command {
	return &cli.Command{
		Name: "retention", Usage: "say how long finished tasks are kept", Category: "The server",
		Description: `A queue can keep less: see dts queue set. What the server was started with (--keep, --keep-rows and
--keep-size of dts serve) holds for what is not set here.`,
		Flags: withConnection(jsonFlag()),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return a.retentionShow(c)
		},
		Subcommands: []*cli.Command{
			{Name: "show", Usage: "show it", Flags: withConnection(jsonFlag()), Action: a.retentionShow},
			{Name: "set", Usage: "change some of it", Description: `What is not named stays as it is; none is what the server was started with.

Example:
   dts retention set --keep 90d --keep-size 5G`,
				Flags: withConnection(
					&cli.StringFlag{Name: "keep", Usage: "keep finished tasks for a `DURATION`"},
					&cli.Int64Flag{Name: "keep-rows", Usage: "keep at most `N` of them"},
					&cli.StringFlag{Name: "keep-size", Usage: "keep at most a `SIZE` of them, such as 500M or 2G"},
					jsonFlag()), Action: a.retentionSet},
		},
	}
}

func (a *app) retentionShow(c *cli.Context) error {
	return a.withServer(c, func(l *link) error {
		r, err := l.Retention(c.Context)
		if err != nil {
			return err
		}
		return a.saidRetention(c, r)
	})
}

func (a *app) retentionSet(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	if !c.IsSet("keep") && !c.IsSet("keep-rows") && !c.IsSet("keep-size") {
		return usagef("dts retention set needs --keep, --keep-rows or --keep-size")
	}
	return a.withServer(c, func(l *link) error {
		old, err := l.Retention(c.Context)
		if err != nil {
			return err
		}
		r := old.Retention
		if err := keepFlags(c, &r); err != nil {
			return err
		}
		now, err := l.PutRetention(c.Context, r)
		if err != nil {
			return err
		}
		return a.saidRetention(c, now)
	})
}

func (a *app) saidRetention(c *cli.Context, r *dts.RetentionState) error {
	if c.Bool("json") {
		return a.printJSON(r)
	}
	text := "Finished tasks are kept " + keepText(r.Effective) + ".\n"
	if r.Retention == (dts.Retention{}) {
		text += "That is how the server was started.\n"
	}
	a.printf("%s", text)
	return nil
}

// keepFlags changes a retention as the flags --keep, --keep-rows and --keep-size say.
func keepFlags(c *cli.Context, r *dts.Retention) error {
	none := func(text string) bool { return text == "none" || text == "0" }
	if text := c.String("keep"); c.IsSet("keep") {
		if r.Seconds = 0; !none(text) {
			d, err := parseSpan("--keep", text, time.Second)
			if err != nil {
				return err
			}
			r.Seconds = d.Seconds()
		}
	}
	if c.IsSet("keep-rows") {
		r.Rows = c.Int64("keep-rows")
	}
	if text := c.String("keep-size"); c.IsSet("keep-size") {
		if r.Bytes = 0; !none(text) {
			mib, err := parseMiB(text)
			if err != nil {
				return usagef("--keep-size: %s", err)
			}
			r.Bytes = mib << 20
		}
	}
	return nil
}

// keepText says how long, or how much, is kept: "for 30d, at most 1000000 of them, at most 2 GiB".
func keepText(r dts.Retention) string {
	var list []string
	if r.Seconds > 0 {
		list = append(list, "for "+span(r.Age()))
	}
	if r.Rows > 0 {
		list = append(list, fmt.Sprintf("at most %d of them", r.Rows))
	}
	if r.Bytes > 0 {
		list = append(list, "at most "+size(r.Bytes))
	}
	return strings.Join(list, ", ")
}

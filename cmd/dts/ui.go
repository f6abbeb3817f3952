package main

import (
	"fmt"
	"os/exec"
	"runtime"

	"github.com/urfave/cli/v2"
)

func (a *app) uiCommand() *cli.Command {
	return &cli.Command{
		Name: "ui", Usage: "print a link that opens the page, once", Category: "The server",
		Flags: withConnection(&cli.BoolFlag{Name: "open", Aliases: []string{"o"}, Usage: "open it in a browser"}, jsonFlag()),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return a.withServer(c, func(l *link) error {
				answer, err := l.LoginLink(c.Context)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(answer)
				}
				a.printf("%s\n", answer.URL)
				if a.terminal {
					a.printf("%s\n", a.dim("It signs one browser in, once, until "+answer.ExpiresAt.In(a.loc).Format("15:04:05")+"."))
				}
				if c.Bool("open") {
					return openBrowser(answer.URL)
				}
				return nil
			})
		},
	}
}

// openBrowser hands a link to the desktop. The link is an argument of a process for a moment, and it is
// spent when the browser has opened it.
func openBrowser(url string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	if err := exec.Command(program, url).Run(); err != nil {
		return fmt.Errorf("open a browser with %s: %w; open the link by hand", program, err)
	}
	return nil
}

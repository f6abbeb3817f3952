package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"
)

func (a *app) manCommand() *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print a manual page, or write all of them", ArgsUsage: "[COMMAND]", Category: "This program",
		Description: `Without COMMAND it is the page of dts itself. Packages hold all of them, for man dts and man dts-add.

Examples:
   dts man add | man -l -
   dts man --dir /usr/local/share/man/man1`,
		Flags: []cli.Flag{&cli.StringFlag{Name: "dir", Usage: "write all pages into the directory `DIR`, one file each"}},
		Action: func(c *cli.Context) error {
			dir := c.String("dir")
			if dir == "" {
				return a.printManual(c)
			}
			if err := noArgs(c); err != nil {
				return err
			}
			return writeManuals(c.App, dir)
		},
	}
}

func (a *app) printManual(c *cli.Context) error {
	if c.Args().Len() == 0 {
		a.printf("%s", programManual(c.App))
		return nil
	}
	name, err := oneArg(c, "COMMAND")
	if err != nil {
		return err
	}
	cmd := find(visible(c.App.Commands), name)
	if cmd == nil {
		return usagef("there is no command %q; dts --help lists them all", clip(clean(name), 40))
	}
	a.printf("%s", commandManual(cmd))
	return nil
}

// writeManuals writes the page of the program and that of each command into a directory, which it makes.
func writeManuals(app *cli.App, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return failf("%s", err)
	}
	pages := map[string]string{"dts.1": programManual(app)}
	for _, cmd := range visible(app.Commands) {
		pages["dts-"+cmd.Name+".1"] = commandManual(cmd)
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return failf("%s", err)
		}
	}
	return nil
}

// manualFiles are where the program looks for what it needs, for people who read the manual.
var manualFiles = [][2]string{
	{"/var/lib/dts", "what a server of root keeps: the database, the socket dts.sock, the token of the administrator in admin.token"},
	{"~/.local/share/dts", "the same for a server of another user; below $XDG_DATA_HOME where that is set. Where a user has no such directory, " +
		"commands talk to the server in /var/lib/dts, if its socket is shared with them"},
	{"/etc/dts.toml", "settings, for root; the names are those of the flags of dts serve, with _ for -"},
	{"~/.config/dts/dts.toml", "settings, for other users; below $XDG_CONFIG_HOME where that is set"},
}

// manualVariables are the variables that belong to no flag.
var manualVariables = [][2]string{
	{"NO_COLOR", "set to anything: no colours on a terminal"},
	{"TZ", "the time zone in which times are shown, in place of the machine's"},
}

// manualExits are the exit codes of commands whose codes mean something else than those of all others.
var manualExits = map[string][][2]string{
	"ci": {
		{"0", "nothing has failed"},
		{"1 to 100", "so many have failed; 100: that many, or more"},
		{fmt.Sprint(exitCI), "the file or a flag is wrong, and nothing ran; or it could not go on"},
		{"129, 130, 143", "stopped by SIGHUP, SIGINT or SIGTERM"},
	},
}

// programManual is dts(1).
func programManual(app *cli.App) string {
	m := newManual("dts", app.Usage)
	m.section("SYNOPSIS")
	m.line(".B dts")
	m.line(`\fICOMMAND\fR [\fIoptions\fR] [\fIarguments\fR]`)
	m.section("DESCRIPTION")
	m.prose(aboutServer + "\n\n" + aboutSettings)
	m.section("COMMANDS")
	m.prose("Each one has a page of its own.")
	var categories []string
	for _, cmd := range visible(app.Commands) {
		if !slices.Contains(categories, cmd.Category) {
			categories = append(categories, cmd.Category)
		}
	}
	for _, category := range categories {
		m.subsection(category)
		for _, cmd := range visible(app.Commands) {
			if cmd.Category == category {
				m.row(bold("dts-"+cmd.Name)+"(1)", roff(cmd.Usage))
			}
		}
	}
	m.exitStatus(nil)
	m.section("ENVIRONMENT")
	m.prose("An empty variable counts as none.")
	seen := map[string]bool{}
	for _, cmd := range visible(app.Commands) {
		for _, f := range append(cmd.Flags, flagsBelow(cmd)...) {
			d, ok := f.(cli.DocGenerationFlag)
			if !ok {
				continue
			}
			for _, v := range d.GetEnvVars() {
				if !seen[v] {
					seen[v] = true
					of := bold("dts-"+cmd.Name) + "(1)"
					if categoryOf(f) == whichServer {
						of = "every command that talks to a server"
					}
					m.row(bold(v), "as "+bold(dashes(f.Names()[0]))+" of "+of)
				}
			}
		}
	}
	for _, v := range manualVariables {
		m.row(bold(v[0]), roff(v[1]))
	}
	m.section("FILES")
	for _, f := range manualFiles {
		m.term(italic(f[0]), roff(f[1]))
	}
	m.section("EXAMPLES")
	m.prose("   dts add --name hello --cron \"*/5 * * * *\" -- echo hello\n   dts ls\n   dts logs -f hello\n   dts why hello")
	m.section("SEE ALSO")
	m.line(bold("dts-serve") + "(1), " + bold("dts-add") + "(1), " + bold("dts-ls") + "(1), " + bold("crontab") + "(5), " + bold("systemctl") + "(1)")
	return m.String()
}

// commandManual is the page of a command, its subcommands included.
func commandManual(cmd *cli.Command) string {
	name := "dts " + cmd.Name
	m := newManual("dts-"+cmd.Name, cmd.Usage)
	m.section("SYNOPSIS")
	m.usage(synopsis(cmd, name))
	text, examples := splitExamples(cmd.Description)
	if text != "" {
		m.section("DESCRIPTION")
		m.prose(text)
	}
	m.options(cmd.Flags)
	if subs := visible(cmd.Subcommands); len(subs) > 0 {
		m.section("COMMANDS")
		for _, sub := range subs {
			m.subsection(name + " " + sub.Name + ": " + sub.Usage)
			m.usage(synopsis(sub, name+" "+sub.Name))
			m.prose(sub.Description)
			for _, f := range sub.Flags {
				if categoryOf(f) != whichServer {
					m.flag(f)
				}
			}
		}
	}
	if flags := serverFlags(append(slices.Clone(cmd.Flags), flagsBelow(cmd)...)); len(flags) > 0 {
		m.section("WHICH SERVER")
		for _, f := range flags {
			m.flag(f)
		}
	}
	if examples != "" {
		m.section("EXAMPLES")
		m.prose(examples)
	}
	m.exitStatus(manualExits[cmd.Name])
	m.section("SEE ALSO")
	m.line(bold("dts") + "(1)")
	return m.String()
}

func flagsBelow(cmd *cli.Command) []cli.Flag {
	var list []cli.Flag
	for _, sub := range visible(cmd.Subcommands) {
		list = append(list, sub.Flags...)
	}
	return list
}

// serverFlags returns those that say which server is meant, each once.
func serverFlags(flags []cli.Flag) []cli.Flag {
	var list []cli.Flag
	for _, f := range flags {
		same := func(g cli.Flag) bool { return g.Names()[0] == f.Names()[0] }
		if categoryOf(f) == whichServer && !slices.ContainsFunc(list, same) {
			list = append(list, f)
		}
	}
	return list
}

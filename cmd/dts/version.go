package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// Set by the linker: -ldflags "-X main.version=… -X main.commit=… -X main.date=…". What is empty is taken
// from what the Go tool records in the binary.
var version, commit, date string

// build says which program this is.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // ends in +dirty when the source had changes on top of it
	Date    string `json:"date,omitempty"`   // of the commit, RFC 3339
	Go      string `json:"go"`
	System  string `json:"system"`
}

func thisBuild() build {
	b := build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "(devel)" {
			b.Version = cmp.Or(b.Version, v)
		}
		vcs := map[string]string{}
		for _, s := range info.Settings {
			vcs[s.Key] = s.Value
		}
		revision := vcs["vcs.revision"]
		revision = revision[:min(len(revision), 12)]
		if vcs["vcs.modified"] == "true" {
			revision += "+dirty"
		}
		b.Commit, b.Date = cmp.Or(b.Commit, revision), cmp.Or(b.Date, vcs["vcs.time"])
	}
	b.Version = cmp.Or(b.Version, "unreleased")
	return b
}

func (b build) String() string {
	s := "dts " + b.Version
	if b.Commit != "" {
		s += " (" + b.Commit
		if b.Date != "" {
			s += ", " + b.Date
		}
		s += ")"
	}
	return s + fmt.Sprintf(" %s %s", b.Go, b.System)
}

func (a *app) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", Category: "This program",
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if c.Bool("json") {
				return a.printJSON(thisBuild())
			}
			a.printf("%s\n", thisBuild())
			return nil
		},
	}
}

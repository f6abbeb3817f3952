package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange puts the flags of a command before its arguments, where package flag wants them, so that
// `dts logs backup -f` and `dts --data /srv ls` work. What follows `--` is never a flag. It remembers in
// a.given which flags were written, and in a.loose the arguments that stood before `--`.
func (a *app) arrange(commands []*cli.Command, args []string) ([]string, error) {
	a.given = map[string]bool{}
	if len(args) == 0 {
		args = []string{"dts"}
	}
	head, rest := []string{args[0]}, args[1:]
	var flags []string
	known := connectionFlags()
	var cmd *cli.Command
	// Up to the command's name, and then its subcommand's, there can be flags of where the server is.
	for len(rest) > 0 {
		word := rest[0]
		if isFlag(word) {
			n := a.flagWords(known, rest)
			if cmd == nil && !a.known(known, word) || cmd != nil {
				break // --help, --version, or an unknown one: package cli tells
			}
			flags, rest = append(flags, rest[:n]...), rest[n:]
			continue
		}
		next := find(commands, word)
		if next == nil {
			break
		}
		head, rest = append(head, word), rest[1:]
		cmd, commands = next, next.Subcommands
		if len(commands) == 0 {
			break
		}
	}
	if cmd == nil {
		if len(flags) > 0 && (len(rest) == 0 || isFlag(rest[0])) {
			return nil, usagef("%s needs a command after it; dts --help lists them", flags[0])
		}
		return append(head, rest...), nil
	}
	var positional, after []string
	for len(rest) > 0 {
		word := rest[0]
		switch {
		case word == "--":
			after, rest = rest[1:], nil
		case isFlag(word):
			n := a.flagWords(cmd.Flags, rest)
			flags, rest = append(flags, rest[:n]...), rest[n:]
		default:
			positional, rest = append(positional, word), rest[1:]
		}
	}
	a.loose = positional
	head = append(head, flags...)
	if len(positional)+len(after) == 0 {
		return head, nil
	}
	if len(cmd.Subcommands) == 0 {
		head = append(head, "--")
	}
	return append(append(head, positional...), after...), nil
}

func isFlag(s string) bool { return len(s) > 1 && s[0] == '-' && s != "--" }

func find(commands []*cli.Command, name string) *cli.Command {
	i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(name) })
	if i < 0 {
		return nil
	}
	return commands[i]
}

func (a *app) known(flags []cli.Flag, word string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return slices.ContainsFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// flagWords returns how many words the flag at the beginning takes: two when its value stands apart.
func (a *app) flagWords(flags []cli.Flag, words []string) int {
	name, _, joined := strings.Cut(strings.TrimLeft(words[0], "-"), "=")
	for _, f := range flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		a.given[f.Names()[0]] = true
		if g, ok := f.(cli.DocGenerationFlag); ok && g.TakesValue() && !joined && len(words) > 1 {
			return 2
		}
	}
	return 1
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"
)

// helpWidth is how wide help is, in columns: it fits every terminal.
const helpWidth = 79

const (
	aboutServer = `The server (dts serve) keeps tasks in a directory and runs them. The other commands talk to it
through a socket in that directory, which only its user may use, or over the network with --server URL and
a token. Every command explains itself with --help.`
	aboutSettings = `What can be said with a flag can also be said with an environment variable or in a TOML file; the flag comes
first, then the variable, then the file.`
)

// exitCodes says what the program's codes mean.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "done"},
	{exitFailed, "it failed, there is no such thing, or its state does not allow it"},
	{exitUsage, "bad input"},
	{exitNoServer, "no server answers"},
}

// appHelp is the help of the program.
func appHelp(c *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\nUsage:\n   dts COMMAND [options] [arguments]\n\n%s\n", c.Name, c.Usage, reflow(aboutServer+"\n\n"+aboutSettings))
	b.WriteString("\nExit codes:\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %d  %s\n", e.code, e.meaning)
	}
	var categories []string
	for _, cmd := range c.Commands {
		if !slices.Contains(categories, cmd.Category) {
			categories = append(categories, cmd.Category)
		}
	}
	for _, category := range categories {
		fmt.Fprintf(&b, "\n%s:\n", category)
		for _, cmd := range c.Commands {
			if cmd.Category == category {
				entry(&b, cmd.Name, 14, cmd.Usage)
			}
		}
	}
	return b.String()
}

// commandHelp is the help of one command, which is called name.
func commandHelp(cmd *cli.Command, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\nUsage:\n   %s\n", name, cmd.Usage, usageLines(synopsis(cmd, name)))
	if cmd.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", reflow(cmd.Description))
	}
	if subs := visible(cmd.Subcommands); len(subs) > 0 {
		b.WriteString("\nCommands:\n")
		for _, sub := range subs {
			entry(&b, sub.Name, 14, sub.Usage)
		}
	}
	categories := []string{}
	for _, f := range cmd.Flags {
		if category := categoryOf(f); !slices.Contains(categories, category) {
			categories = append(categories, category)
		}
	}
	for _, category := range categories {
		title := category
		if title == "" {
			title = "Options"
		}
		fmt.Fprintf(&b, "\n%s:\n", title)
		for _, f := range cmd.Flags {
			if categoryOf(f) == category {
				entry(&b, flagNames(f), 24, flagUsage(f))
			}
		}
	}
	return b.String()
}

// synopsis returns how a command is called, a line for each way.
func synopsis(cmd *cli.Command, name string) string {
	switch {
	case cmd.UsageText != "":
		return cmd.UsageText
	case len(cmd.Subcommands) > 0:
		return name + " COMMAND"
	}
	return strings.TrimSpace(name + " [options] " + cmd.ArgsUsage)
}

// usageLines wraps the lines of a usage, and indents them.
func usageLines(usage string) string {
	var lines []string
	for line := range strings.Lines(usage) {
		wrapped := text.WrapSoft(strings.TrimSpace(line), helpWidth-6)
		for i, part := range strings.Split(wrapped, "\n") {
			part = strings.TrimRight(part, " ")
			if i > 0 {
				part = "   " + part
			}
			lines = append(lines, part)
		}
	}
	return strings.Join(lines, "\n   ")
}

// visible returns the commands that are for people.
func visible(list []*cli.Command) []*cli.Command {
	return slices.DeleteFunc(slices.Clone(list), func(c *cli.Command) bool { return c.Hidden })
}

func categoryOf(f cli.Flag) string {
	if c, ok := f.(cli.CategorizableFlag); ok {
		return c.GetCategory()
	}
	return ""
}

// flagNames writes the names of a flag and what its value is called: --limit, -n N.
func flagNames(f cli.Flag) string {
	var names []string
	for _, n := range f.Names() {
		names = append(names, dashes(n))
	}
	s := strings.Join(names, ", ")
	if d, ok := f.(cli.DocGenerationFlag); ok && d.TakesValue() {
		if _, value, found := strings.Cut(d.GetUsage(), "`"); found {
			value, _, _ = strings.Cut(value, "`")
			s += " " + value
		}
	}
	return s
}

// flagUsage writes what a flag is for, its default and its variable.
func flagUsage(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	s := strings.ReplaceAll(d.GetUsage(), "`", "")
	if text := d.GetDefaultText(); text != "" && !unset(f) {
		s += "; default: " + text
	}
	for _, v := range d.GetEnvVars() {
		s += " [$" + v + "]"
	}
	return s
}

// unset reports whether a flag that is left out says nothing, so that there is no default to tell: leaving out a number is
// something else than 0.
func unset(f cli.Flag) bool {
	switch f := f.(type) {
	case *cli.BoolFlag:
		return true
	case *cli.IntFlag:
		return f.Value == 0 && f.DefaultText == ""
	case *cli.Int64Flag:
		return f.Value == 0 && f.DefaultText == ""
	}
	return false
}

// entry writes a word and what it means beside it, or below it where the word is long.
func entry(b *strings.Builder, word string, column int, meaning string) {
	pad := strings.Repeat(" ", column)
	lines := strings.Split(text.WrapSoft(meaning, helpWidth-column), "\n")
	if len(word) > column-4 {
		fmt.Fprintf(b, "  %s\n", word)
	} else {
		fmt.Fprintf(b, "  %-*s%s\n", column-2, word, strings.TrimSpace(lines[0]))
		lines = lines[1:]
	}
	for _, l := range lines {
		fmt.Fprintf(b, "%s%s\n", pad, strings.TrimSpace(l))
	}
}

// reflow fits paragraphs to the width of help. Indented lines, and the line before them, stay as they are.
func reflow(s string) string {
	var out []string
	for paragraph := range strings.SplitSeq(s, "\n\n") {
		if !strings.Contains(paragraph, "\n ") && !strings.HasPrefix(paragraph, " ") {
			lines := strings.Split(text.WrapSoft(strings.Join(strings.Fields(paragraph), " "), helpWidth), "\n")
			for i := range lines {
				lines[i] = strings.TrimSpace(lines[i])
			}
			paragraph = strings.Join(lines, "\n")
		}
		out = append(out, paragraph)
	}
	return strings.Join(out, "\n\n")
}

// literal makes a text a template that says just that.
func literal(s string) string { return strings.ReplaceAll(s, "{{", "{{`{{`}}") }

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// manual is a page in the man macros, as groff and mandoc read them.
type manual struct {
	strings.Builder
	headed bool // the last line is a heading, after which a paragraph begins by itself
}

func newManual(name, usage string) *manual {
	m := &manual{}
	b := thisBuild()
	day := ""
	if at, err := time.Parse(time.RFC3339, b.Date); err == nil {
		day = at.UTC().Format(time.DateOnly)
	}
	m.line(fmt.Sprintf(".TH %s 1 \"%s\" \"dts %s\" \"dts\"", strings.ToUpper(roff(name)), day, roff(b.Version)))
	m.line(".nh\n.ad l") // as in the help: no word is broken, and no line filled with spaces
	m.section("NAME")
	m.line(roff(name) + ` \- ` + roff(usage))
	return m
}

func (m *manual) line(s string) {
	m.WriteString(s + "\n")
	m.headed = strings.HasPrefix(s, ".SH ") || strings.HasPrefix(s, ".SS ")
}

func (m *manual) section(title string)   { m.line(".SH " + title) }
func (m *manual) subsection(name string) { m.line(".SS " + guard(roff(name))) }

// term writes a word and what it means; both are roff.
func (m *manual) term(word, meaning string) { m.line(".TP\n" + guard(word) + "\n" + guard(meaning)) }

// row is a term whose meaning stands beside it, in a column of its own.
func (m *manual) row(word, meaning string) { m.line(".TP 20\n" + guard(word) + "\n" + guard(meaning)) }

// usage writes how a command is called, a line for each way, wrapped as in the help.
func (m *manual) usage(text string) {
	m.line(".nf")
	for l := range strings.SplitSeq(usageLines(text), "\n") {
		m.line(guard(roff(strings.TrimPrefix(l, "   "))))
	}
	m.line(".fi")
}

// prose writes paragraphs. What is indented is kept as it is, as reflow does.
func (m *manual) prose(s string) {
	for paragraph := range strings.SplitSeq(s, "\n\n") {
		if strings.TrimSpace(paragraph) == "" {
			continue
		}
		if !m.headed {
			m.line(".PP")
		}
		if !strings.Contains(paragraph, "\n ") && !strings.HasPrefix(paragraph, " ") {
			m.line(guard(roff(strings.Join(strings.Fields(paragraph), " "))))
			continue
		}
		indented := false
		m.line(".nf")
		for l := range strings.Lines(paragraph) {
			l = strings.TrimRight(l, "\n")
			if deep := strings.HasPrefix(l, " "); deep != indented {
				indented = deep
				m.line(map[bool]string{true: ".RS 4", false: ".RE"}[deep])
			}
			m.line(guard(roff(strings.TrimPrefix(l, "   "))))
		}
		if indented {
			m.line(".RE")
		}
		m.line(".fi")
	}
}

// options writes the flags of a command by what they are about, but for those that say which server is meant.
func (m *manual) options(flags []cli.Flag) {
	var categories []string
	for _, f := range flags {
		if c := categoryOf(f); c != whichServer && !slices.Contains(categories, c) {
			categories = append(categories, c)
		}
	}
	if len(categories) > 0 {
		m.section("OPTIONS")
	}
	for _, category := range categories {
		if category != "" {
			m.subsection(category)
		}
		for _, f := range flags {
			if categoryOf(f) == category {
				m.flag(f)
			}
		}
	}
}

// flag writes a flag: its names bold, its value italic, also where its usage names that.
func (m *manual) flag(f cli.Flag) {
	var names []string
	for _, n := range f.Names() {
		names = append(names, bold(dashes(n)))
	}
	word := strings.Join(names, ", ")
	usage := ""
	if d, ok := f.(cli.DocGenerationFlag); ok {
		before, value, found := strings.Cut(d.GetUsage(), "`")
		value, after, _ := strings.Cut(value, "`")
		usage = roff(before)
		if found && d.TakesValue() {
			word += " " + italic(value)
			usage += italic(value) + roff(after)
		}
		if text := d.GetDefaultText(); text != "" && !unset(f) {
			usage += roff("; default: " + text)
		}
		for _, v := range d.GetEnvVars() {
			usage += " [" + bold("$"+v) + "]"
		}
	}
	m.term(word, usage)
}

// exitStatus writes what exit codes mean: a command's own, or those of all commands.
func (m *manual) exitStatus(own [][2]string) {
	m.section("EXIT STATUS")
	for _, e := range own {
		m.term(bold(e[0]), roff(e[1]))
	}
	if own != nil {
		return
	}
	for _, e := range exitCodes {
		m.term(bold(fmt.Sprint(e.code)), roff(e.meaning))
	}
	m.term(bold(fmt.Sprint(exitInterrupted)), "interrupted")
}

// splitExamples takes the paragraph of examples out of a description.
func splitExamples(description string) (rest, examples string) {
	var kept []string
	for paragraph := range strings.SplitSeq(description, "\n\n") {
		if text, ok := strings.CutPrefix(paragraph, "Examples:\n"); ok {
			examples = text
		} else {
			kept = append(kept, paragraph)
		}
	}
	return strings.Join(kept, "\n\n"), examples
}

func bold(s string) string   { return `\fB` + roff(s) + `\fR` }
func italic(s string) string { return `\fI` + roff(s) + `\fR` }

// roff writes a text so that every character stands for itself, also when it is copied from the page.
func roff(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '\\':
			b.WriteString(`\e`)
		case '-':
			b.WriteString(`\-`)
		case '\'':
			b.WriteString(`\(aq`)
		case '`':
			b.WriteString(`\(ga`)
		case '^':
			b.WriteString(`\(ha`)
		case '~':
			b.WriteString(`\(ti`)
		default:
			if r > '~' {
				fmt.Fprintf(&b, `\[u%04X]`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// guard keeps a line from being read as a request.
func guard(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}

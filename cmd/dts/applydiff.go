package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fatih/color"

	"dts/cmd/dts/taskfile"
)

// most is how many characters of a value, and manyLines how many lines of a text, a difference shows.
const (
	most      = 60
	manyLines = 10
)

// printDifference prints a field that is another: on one line, or, of a text of several, the lines that are.
func (a *app) printDifference(l taskfile.Line) {
	if l.Note == "" && (strings.Contains(l.Old, "\n") || strings.Contains(l.New, "\n")) {
		a.printLines(l)
		return
	}
	a.printf("      %s\n", clean(fit(l)))
}

// printLines prints what differs of a text, from its first line that does to its last.
func (a *app) printLines(l taskfile.Line) {
	from, to := linesOf(l.Old), linesOf(l.New)
	same := 0
	for same < min(len(from), len(to)) && from[same] == to[same] {
		same++
	}
	from, to = from[same:], to[same:]
	for len(from) > 0 && len(to) > 0 && from[len(from)-1] == to[len(to)-1] {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	a.printf("      %s: from line %d on\n", clean(l.Field), same+1)
	for i, list := range [][]string{from, to} {
		sign, paint := "- ", color.FgRed
		if i == 1 {
			sign, paint = "+ ", color.FgGreen
		}
		for _, line := range list[:min(len(list), manyLines)] {
			a.printf("        %s\n", a.paint(sign+clip(untabbed(line), 2*most), paint))
		}
		if more := len(list) - manyLines; more > 0 {
			a.printf("        %s\n", a.paint(sign+fmt.Sprintf("… and %s", count(more, "more line")), paint))
		}
	}
}

// linesOf are the lines of a text; one that is not there has none.
func linesOf(s string) []string {
	if s == taskfile.None {
		return nil
	}
	return strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
}

// untabbed writes a line of a text so that it does nothing to a terminal, with its tabs as spaces.
func untabbed(s string) string { return clean(strings.ReplaceAll(s, "\t", "    ")) }

// fit shortens the long values of a line, so that what differs in them can be seen.
func fit(l taskfile.Line) string {
	from, to := quoteTabs(l.Old), quoteTabs(l.New)
	same := 0
	for same < min(len(from), len(to)) && from[same] == to[same] {
		same++
	}
	if cut := same - 20; cut > 0 && max(len(from), len(to)) > most {
		from, to = tail(from, cut), tail(to, cut)
	}
	l.Old, l.New = clip(from, most), clip(to, most)
	l.Note = clip(l.Note, 2*most)
	return l.String()
}

// quoteTabs quotes a text with what takes no place, or more than one.
func quoteTabs(s string) string {
	if strings.Contains(s, "\t") {
		return strconv.Quote(s)
	}
	return s
}

// tail is what follows the first n bytes of a text, from a whole character on.
func tail(s string, n int) string { return "…" + strings.ToValidUTF8(s[n:], "") }

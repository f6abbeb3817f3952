package main

import (
	"strings"

	"github.com/fatih/color"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"dts"
)

// table prints rows under headers, without lines: two spaces between columns. flexible is the index of the
// column that gives way where the terminal is too narrow.
func (a *app) table(headers []string, rows [][]string, flexible int) {
	a.printf("%s\n", a.renderTable(headers, rows, flexible))
}

// renderTable is what table prints, without the last line's end.
func (a *app) renderTable(headers []string, rows [][]string, flexible int) string {
	if a.width > 0 && len(rows) > 0 {
		a.narrow(headers, rows, flexible)
	}
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	head := make(table.Row, len(headers))
	for i, h := range headers {
		head[i] = h
	}
	t.AppendHeader(head)
	for _, row := range rows {
		cells := make(table.Row, len(row))
		for i, c := range row {
			cells[i] = c
		}
		t.AppendRow(cells)
	}
	return t.Render()
}

// narrow fits the flexible column to what the terminal has room for: the last column is wrapped, another one
// cut.
func (a *app) narrow(headers []string, rows [][]string, flexible int) {
	taken := 0
	for i, h := range headers {
		if i == flexible {
			continue
		}
		widest := width(h)
		for _, row := range rows {
			widest = max(widest, width(row[i]))
		}
		taken += widest + 2
	}
	room := a.width - taken - 1
	for _, row := range rows {
		if flexible == len(headers)-1 {
			row[flexible] = strings.TrimRight(text.WrapSoft(row[flexible], max(room, 16)), " ")
		} else {
			row[flexible] = clip(row[flexible], max(room, 8))
		}
	}
}

// status writes a status in its colour.
func (a *app) status(s string) string {
	switch dts.Status(s) {
	case dts.Success, "ACTIVE", "COMPLETED":
		return a.paint(s, color.FgGreen)
	case dts.Failed, "TIMED_OUT", "LOST":
		return a.paint(s, color.FgRed)
	case dts.Running:
		return a.paint(s, color.FgCyan)
	case dts.Skipped, "PAUSED":
		return a.paint(s, color.FgYellow)
	case dts.Cancelled:
		return a.paint(s, color.Faint)
	}
	return s
}

// fact is one line of a description: a word, and what it is.
type fact struct{ name, value string }

// facts prints facts with the values under each other. Those without a value are left out.
func (a *app) facts(list []fact) {
	widest := 0
	for _, f := range list {
		if f.value != "" {
			widest = max(widest, len(f.name))
		}
	}
	for _, f := range list {
		if f.value == "" {
			continue
		}
		pad := strings.Repeat(" ", widest-len(f.name)+2)
		value := strings.ReplaceAll(f.value, "\n", "\n"+strings.Repeat(" ", widest+4))
		a.printf("  %s%s%s\n", a.dim(f.name), pad, value)
	}
}

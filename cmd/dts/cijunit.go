package main

import (
	"bufio"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dts"
)

// junitSuite and junitCase are what JUnit XML says of a file and of one of its runs. There is no standard: it is what the
// schema of Jenkins' xunit plugin (junit-10.xsd) allows, which GitLab and others read too.
type junitSuite struct {
	Name                   string
	At                     time.Time
	Took                   time.Duration
	Tests, Failed, Skipped int
}

type junitCase struct {
	Class, Name string
	Took        time.Duration
	Result      ciResult
	Reason      string
	Output      []junitOutput // of its attempts
}

// junitOutput is what an attempt printed. Title stands before it; "" where there is one attempt only.
type junitOutput struct {
	Title string
	dts.Output
}

// junitWriter writes a report, one case after the other, so that not all outputs are in memory at once. The first error
// of the writer below stays until End.
type junitWriter struct{ w *bufio.Writer }

func newJUnit(w io.Writer, s junitSuite) *junitWriter {
	j := &junitWriter{bufio.NewWriter(w)}
	counts := ` tests="` + strconv.Itoa(s.Tests) + `" failures="` + strconv.Itoa(s.Failed) + `" errors="0" time="` + junitTime(s.Took) + `"`
	j.raw(xml.Header+`<testsuites`, counts, ">\n", ` <testsuite name="`)
	j.attribute(s.Name)
	j.raw(`"`, counts, ` skipped="`, strconv.Itoa(s.Skipped), `" timestamp="`, s.At.UTC().Format("2006-01-02T15:04:05"), "\">\n")
	return j
}

func (j *junitWriter) Case(c junitCase) {
	j.raw(`  <testcase classname="`)
	j.attribute(c.Class)
	j.raw(`" name="`)
	j.attribute(c.Name)
	j.raw(`" time="`, junitTime(c.Took), `">`, "\n")
	switch c.Result {
	case ciFailed:
		j.raw(`   <failure message="`)
		j.attribute(c.Reason)
		j.raw(`">`)
		j.text(c.Reason)
		j.raw("</failure>\n")
	case ciSkipped, ciCancelled:
		j.raw(`   <skipped message="`)
		j.attribute(c.Reason)
		j.raw("\"/>\n")
	}
	if len(c.Output) > 0 {
		j.raw("   <system-out>")
		for _, o := range c.Output {
			j.output(&o)
		}
		j.raw("</system-out>\n")
	}
	j.raw("  </testcase>\n")
}

func (j *junitWriter) output(o *junitOutput) {
	if o.Title != "" {
		j.text("--- " + o.Title + "\n")
	}
	head, tail := string(o.Head), string(o.Tail)
	if dropped := o.Total - int64(len(head)+len(tail)); dropped > 0 {
		head += "\n[dts: " + size(dropped) + " are not kept]\n"
	}
	text := head + tail
	if o.Title != "" && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	j.text(text)
}

// End ends the report.
func (j *junitWriter) End() error {
	j.raw(" </testsuite>\n</testsuites>\n")
	return j.w.Flush()
}

func (j *junitWriter) raw(parts ...string) {
	for _, s := range parts {
		j.w.WriteString(s) // the writer keeps its error
	}
}

// attribute and text write what is not markup.
func (j *junitWriter) attribute(s string) { j.raw(attributeEscapes.Replace(plainText(s))) }
func (j *junitWriter) text(s string)      { j.raw(textEscapes.Replace(plainText(s))) }

var (
	textEscapes      = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#xD;")
	attributeEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&quot;", "\n", "&#xA;", "\r", "&#xD;", "\t", "&#x9;")
)

func junitTime(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// colours are the sequences by which programs colour what they print, and move about in it (ECMA-48).
var colours = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)|[@-Z\\\\^_])")

// plainText leaves out what XML 1.0 cannot hold, and the sequences of terminals.
func plainText(s string) string {
	if strings.IndexByte(s, '\x1b') >= 0 {
		s = colours.ReplaceAllString(s, "")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000 && r <= utf8.MaxRune:
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// writeJUnit writes the report as JUnit XML, with what the runs have printed.
func (s *ciServer) writeJUnit(ctx context.Context, w io.Writer, suite string, r *ciReport) error {
	j := newJUnit(w, junitSuite{Name: suite, At: r.Began, Took: time.Duration(r.Seconds * float64(time.Second)),
		Tests: len(r.Runs), Failed: r.Failed, Skipped: r.Skipped + r.Cancelled})
	for i := range r.Runs {
		run := &r.Runs[i]
		c := junitCase{Class: suite, Name: run.Name, Took: time.Duration(run.Seconds * float64(time.Second)), Result: run.Result, Reason: run.Reason}
		if run.Workflow != "" {
			c.Class += "." + run.Workflow
		}
		if run.Run > 0 {
			c.Name += fmt.Sprintf(" #%d", run.Run)
		}
		var err error
		if c.Output, err = s.outputs(ctx, run); err != nil {
			return err
		}
		j.Case(c)
	}
	return j.End()
}

// outputs reads what the attempts of a run have printed.
func (s *ciServer) outputs(ctx context.Context, run *ciRun) (list []junitOutput, err error) {
	if run.id == "" || run.Attempts == 0 {
		return nil, nil
	}
	attempts, err := s.st.Attempts(ctx, dts.DefaultTenant, run.id)
	if err != nil {
		return nil, err
	}
	for _, a := range attempts {
		o, err := s.st.Output(ctx, dts.DefaultTenant, run.id, a.Number)
		if err != nil && dts.CodeOf(err) != dts.ErrNotFound {
			return nil, err
		}
		title := ""
		if len(attempts) > 1 {
			title = fmt.Sprintf("attempt %d: %s", a.Number, a.State)
			if a.Error != "" {
				title += ": " + a.Error
			}
		}
		if title != "" || o.Total > 0 {
			list = append(list, junitOutput{title, *o})
		}
	}
	return list, nil
}

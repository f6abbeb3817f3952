package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/sched/cron"
)

// maxLine is how long a line of expressions on standard input may be, in bytes.
const maxLine = 4096

// maxNext is how many instants --count gives at most.
const maxNext = 1000

func (a *app) nextCommand() *cli.Command {
	return &cli.Command{
		Name: "next", Usage: "say what a schedule means and when it fires", ArgsUsage: "EXPR… | --every D | --rrule R | -", Category: "Without a server",
		Description: `Several expressions are one schedule: it fires at the instants of each. Below an instant stands what the
changing of clocks does to it, and an instant that falls out because of that is shown as well.

Reads expressions from standard input, one a line, when EXPR is - or when there is none and
something is piped in. A line is EXPR, or EXPR, a tab and a time zone. Exits with 2 when one of them was
refused.

With --json, an object a line: expression, time_zone, description and next, or error.

Examples:
   dts next "0 9 * * mon-fri" "0 11 * * sat"
   dts next "30 2 * * *" --tz Europe/Berlin --from 2026-03-27T00:00:00Z --dst-gap skip
   dts next --rrule "FREQ=MONTHLY;INTERVAL=2;BYDAY=2TU" --start "2026-01-01 09:00"
   printf '%s\t%s\n' "0 9 * * *" Asia/Tokyo | dts next --json`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "tz", Usage: "IANA `ZONE`; default: this machine's"},
			&cli.StringFlag{Name: "every", Usage: "a fixed interval, a `DURATION`, in place of EXPR"},
			&cli.StringFlag{Name: "rrule", Usage: "the calendar rule `R` of RFC 5545, in place of EXPR"},
			&cli.StringFlag{Name: "start", Usage: "where the interval or the rule begins, `TIME`; default: where --from is"},
			&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Value: 5, DefaultText: "5", Usage: "`N` instants"},
			&cli.StringFlag{Name: "from", Usage: "those after `TIME`; default: now"},
			&cli.StringFlag{Name: "name", Usage: "the recurring task's `NAME`, which decides what H and ~ choose"},
			jsonFlag(),
		}, dstFlags("When clocks change")...),
		Action: a.next,
	}
}

// question is what `dts next` was asked.
type question struct {
	zone    zone
	from    time.Time
	start   time.Time // of an interval or a rule; where from is unless it is given
	count   int
	name    string
	gap     dts.DSTGap
	overlap dts.DSTOverlap
	json    bool
}

// options are those of package cron, in a zone.
func (q question) options(loc *time.Location) cron.Options {
	return cron.Options{Location: loc, Seed: q.name, Gap: cron.GapPolicy(q.gap), Overlap: cron.OverlapPolicy(q.overlap)}
}

// answer is what it says about one expression.
type answer struct {
	Expression  string   `json:"expression"`
	TimeZone    string   `json:"time_zone,omitempty"`
	Description string   `json:"description,omitempty"`
	Next        []string `json:"next,omitempty"` // RFC 3339, with the zone's offset
	Error       string   `json:"error,omitempty"`

	instants []time.Time
	schedule cron.Schedule // nil for @reboot
	ownZone  bool          // the description names the zone
}

// MarshalJSON keeps an empty list of instants, such as that of @reboot, apart from an error.
func (w answer) MarshalJSON() ([]byte, error) {
	type plain answer
	if w.Error != "" {
		return json.Marshal(plain(w))
	}
	return json.Marshal(struct {
		plain
		Next []string `json:"next"`
	}{plain(w), append([]string{}, w.Next...)})
}

func (a *app) next(c *cli.Context) error {
	q := question{count: c.Int("count"), name: c.String("name"), json: c.Bool("json"), from: a.now()}
	var err error
	if q.zone, err = a.zoneFor(c.String("tz")); err != nil {
		return err
	}
	if q.count < 1 || q.count > maxNext {
		return usagef("--count: is %d; use 1 to %d", q.count, maxNext)
	}
	if text := c.String("from"); text != "" {
		if q.from, _, err = parseWhen(text, q.zone.loc, a.now()); err != nil {
			return usagef("--from: %s", err)
		}
	}
	if q.gap, err = choice(c, "dst-gap", gapWords); err != nil {
		return err
	}
	if q.overlap, err = choice(c, "dst-overlap", dstOverlapWords); err != nil {
		return err
	}
	q.start = q.from
	if c.IsSet("start") {
		if !c.IsSet("every") && !c.IsSet("rrule") {
			return usagef("--start: is for --every and --rrule; for an expression give --from")
		}
		if q.start, _, err = parseWhen(c.String("start"), q.zone.loc, a.now()); err != nil {
			return usagef("--start: %s", err)
		}
	}
	switch {
	case c.IsSet("every") && c.IsSet("rrule"):
		return usagef("--every and --rrule are both given; keep one")
	case (c.IsSet("every") || c.IsSet("rrule")) && c.Args().Present():
		return usagef("an expression and --every or --rrule are both given; keep one")
	case c.IsSet("every"):
		return a.tell(q, q.every(c.String("every")), "every")
	case c.IsSet("rrule"):
		return a.tell(q, q.rule(c.String("rrule")), "rrule")
	case c.Args().Len() > 1 && slices.ContainsFunc(c.Args().Slice(), inPieces):
		return usagef("an expression is one argument: put quotes around it, as in dts next %q", strings.Join(c.Args().Slice(), " "))
	case c.Args().First() == "-" || !c.Args().Present() && a.piped():
		return a.nextLines(q)
	case !c.Args().Present():
		return usagef("dts next needs an expression, as in dts next \"*/5 * * * *\", or --every")
	}
	return a.tell(q, q.cron(strings.Join(c.Args().Slice(), "\n"), q.zone), "cron")
}

// inPieces reports whether an argument is no whole expression, but a field of one.
func inPieces(s string) bool {
	s = strings.TrimSpace(s)
	return !strings.ContainsAny(s, " \t") && !strings.HasPrefix(s, "@")
}

// piped reports whether standard input is something other than a terminal.
func (a *app) piped() bool {
	f, ok := a.in.(*os.File)
	if !ok {
		return a.in != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// tell prints one answer; a refusal is an error about field.
func (a *app) tell(q question, w answer, field string) error {
	if q.json {
		if err := a.printLine(w); err != nil {
			return err
		}
		if w.Error != "" {
			return exitOnly(exitUsage)
		}
		return nil
	}
	if w.Error != "" {
		return usagef("%s: %s", field, w.Error)
	}
	a.printAnswer(q, w, "")
	return nil
}

// printLine prints JSON on one line.
func (a *app) printLine(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func (a *app) printAnswer(q question, w answer, title string) {
	if title != "" {
		a.printf("%s  ", a.bold(clean(title)))
	}
	a.printf("%s", w.Description)
	if len(w.instants) > 0 && !w.ownZone {
		if w.TimeZone == q.zone.name {
			a.printf(", %s", q.zone)
		} else {
			a.printf(", %s", w.TimeZone)
		}
	}
	a.printf("\n")
	if len(w.instants) > 0 {
		for _, line := range a.instantLines(withEffects(w.schedule, w.instants, q.from), w.instants[0].Location(), true) {
			a.printf("  %s\n", line)
		}
	}
	switch {
	case len(w.instants) == 0 && w.schedule != nil:
		a.printf("  never again\n")
	case len(w.instants) > 0 && len(w.instants) < q.count:
		a.printf("  and then never again\n")
	}
}

// nextLines answers the lines of standard input, as they come.
func (a *app) nextLines(q question) error {
	in := bufio.NewReaderSize(a.in, maxLine)
	refused, first := false, true
	for number := 1; ; number++ {
		line, long, err := readLine(in)
		if err != nil && err != io.EOF {
			return failf("read standard input: %s", err)
		}
		if err == io.EOF && line == "" {
			break
		}
		w := answer{Expression: line}
		if long {
			w = answer{Expression: clip(clean(line), 60), Error: "the line is longer than 4095 bytes"}
		} else {
			w = q.line(line)
		}
		refused = refused || w.Error != ""
		switch {
		case q.json:
			if err := a.printLine(w); err != nil {
				return err
			}
		case w.Error != "":
			a.notef("line %d: cron: %s", number, w.Error)
		default:
			if !first {
				a.printf("\n")
			}
			first = false
			a.printAnswer(q, w, w.Expression)
		}
	}
	if refused {
		return exitOnly(exitUsage)
	}
	return nil
}

// readLine reads a line without its end. Of one that does not fit the buffer it returns the beginning, and
// skips the rest.
func readLine(in *bufio.Reader) (line string, long bool, err error) {
	b, err := in.ReadSlice('\n')
	line = string(b)
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		_, err = in.ReadSlice('\n')
	}
	if err == io.EOF && line != "" {
		err = nil
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), long, err
}

// line answers EXPR or EXPR<TAB>ZONE. Fields can be separated by tabs too, so the last tab begins a zone only
// where a whole expression stands before it.
func (q question) line(line string) answer {
	expr, name, ok := cutLast(line, '\t')
	fields := strings.Fields(expr)
	if len(fields) > 0 && strings.Contains(fields[0], "TZ=") {
		fields = fields[1:]
	}
	if !ok || len(fields) < 5 && (len(fields) == 0 || fields[0][0] != '@') {
		return q.cron(line, q.zone)
	}
	if name == "" {
		return q.cron(expr, q.zone)
	}
	loc, err := cron.LoadLocation(name)
	if err != nil {
		return answer{Expression: expr, TimeZone: name, Error: err.Error()}
	}
	return q.cron(expr, zone{name: name, loc: loc})
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// cron answers one expression.
func (q question) cron(expr string, z zone) answer {
	w := answer{Expression: strings.ToValidUTF8(expr, "\uFFFD"), TimeZone: z.name}
	s, err := cron.Parse(expr, q.options(z.loc))
	if err != nil && !errors.Is(err, cron.ErrReboot) {
		w.Error = err.Error()
		return w
	}
	if w.Description, err = cron.Describe(expr); err != nil {
		w.Error = err.Error()
		return w
	}
	if d, ok := cron.IntervalOf(expr); ok {
		s = cron.Every(d, q.from.In(z.loc))
	}
	if s != nil {
		w.fill(s, q)
	}
	if fields := strings.Fields(expr); strings.HasPrefix(fields[0], "CRON_TZ=") || strings.HasPrefix(fields[0], "TZ=") {
		_, w.TimeZone, _ = strings.Cut(fields[0], "=")
		w.ownZone = true
	}
	return w
}

// every answers a fixed interval.
func (q question) every(text string) answer {
	w := answer{Expression: "@every " + strings.ToValidUTF8(text, "\uFFFD"), TimeZone: q.zone.name}
	d, err := cron.ParseInterval(text)
	if err != nil {
		w.Error = err.Error()
		return w
	}
	w.Description = cron.DescribeEvery(d)
	w.fill(cron.Bounded(cron.Every(d, q.start.In(q.zone.loc)), q.start, time.Time{}), q)
	return w
}

// rule answers a rule of RFC 5545.
func (q question) rule(text string) answer {
	w := answer{Expression: strings.ToValidUTF8(text, "\uFFFD"), TimeZone: q.zone.name}
	s, err := cron.ParseRule(text, q.start, q.options(q.zone.loc))
	if err == nil {
		w.Description, err = cron.DescribeRule(text, q.start.In(q.zone.loc))
	}
	if err != nil {
		w.Error = err.Error()
		return w
	}
	w.fill(s, q)
	return w
}

func (w *answer) fill(s cron.Schedule, q question) {
	w.schedule = s
	w.instants = upTo(s, q.from, q.count)
	for _, at := range w.instants {
		w.Next = append(w.Next, at.Format(time.RFC3339Nano))
	}
}

package calendar

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The deepest nesting of components that is read; real files have three.
const maxDepth = 8

// property is one content line of RFC 5545, section 3.1.
type property struct {
	line   int // where it begins, counted from 1
	name   string
	params map[string]string // by name in capitals; of several values the first; nil when there are none
	value  string
}

// component is what stands between a BEGIN and its END.
type component struct {
	line       int
	name       string
	properties map[string][]property
	inside     []*component
}

// first returns the first property of a name, or nil.
func (c *component) first(name string) *property {
	if list := c.properties[name]; len(list) > 0 {
		return &list[0]
	}
	return nil
}

// readComponents takes an iCalendar file apart: one or more VCALENDARs. A byte order mark, lines that end with LF or CR
// alone and blank lines are let pass, and bytes that are not UTF-8 are replaced: they can only stand in texts.
func readComponents(text string) (root *component, err error) {
	switch {
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		return nil, errors.New("is UTF-16; save it as UTF-8")
	case !utf8.ValidString(text):
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	text = strings.TrimPrefix(text, "\uFEFF")
	root = &component{}
	open := []*component{root}
	for r := newLineReader(text); ; {
		line, number, more := r.next()
		if !more {
			break
		}
		if line == "" {
			continue
		}
		p, err := parseProperty(line, number)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		top := open[len(open)-1]
		switch {
		case p.name == "BEGIN":
			c := &component{line: number, name: strings.ToUpper(p.value), properties: map[string][]property{}}
			if (top == root) != (c.name == "VCALENDAR") {
				return nil, fmt.Errorf("line %d: BEGIN:%.32s where BEGIN:VCALENDAR must be, or the other way round; is this an iCalendar file?", number, p.value)
			}
			if len(open) > maxDepth {
				return nil, fmt.Errorf("line %d: components are nested more than %d deep", number, maxDepth)
			}
			top.inside = append(top.inside, c)
			open = append(open, c)
		case top == root:
			return nil, fmt.Errorf("line %d: %.32q stands outside of BEGIN:VCALENDAR and END:VCALENDAR; is this an iCalendar file?", number, line)
		case p.name == "END":
			if !strings.EqualFold(p.value, top.name) {
				return nil, fmt.Errorf("line %d: END:%.32s ends what began as %.32s in line %d", number, p.value, top.name, top.line)
			}
			open = open[:len(open)-1]
		default:
			top.properties[p.name] = append(top.properties[p.name], p)
		}
	}
	if top := open[len(open)-1]; top != root {
		return nil, fmt.Errorf("%.32s in line %d has no END; the file may be cut off", top.name, top.line)
	}
	if len(root.inside) == 0 {
		return nil, errors.New("has no BEGIN:VCALENDAR; is this an iCalendar file?")
	}
	return root, nil
}

// lineReader unfolds lines: one that begins with a space or a tab continues the one before.
type lineReader struct {
	lines  []string
	number int // of the line that comes next, counted from 0
}

func newLineReader(text string) *lineReader {
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return &lineReader{lines: strings.Split(text, "\n")}
}

func (r *lineReader) next() (line string, number int, ok bool) {
	if r.number == len(r.lines) {
		return "", 0, false
	}
	number = r.number + 1
	take := func() string {
		s := strings.TrimSuffix(r.lines[r.number], "\r")
		r.number++
		return s
	}
	first := take()
	folded := func() bool {
		return r.number < len(r.lines) && (strings.HasPrefix(r.lines[r.number], " ") || strings.HasPrefix(r.lines[r.number], "\t"))
	}
	if !folded() {
		return first, number, true
	}
	var b strings.Builder
	b.WriteString(first)
	for folded() {
		b.WriteString(take()[1:])
	}
	return b.String(), number, true
}

// parseProperty reads NAME;PARAM=value;PARAM="value":VALUE.
func parseProperty(line string, number int) (property, error) {
	p := property{line: number}
	end := strings.IndexAny(line, ";:")
	if end <= 0 {
		return p, fmt.Errorf("%.32q is not NAME:VALUE", line)
	}
	p.name = strings.ToUpper(strings.TrimSpace(line[:end]))
	rest := line[end:]
	for strings.HasPrefix(rest, ";") {
		name, after, ok := strings.Cut(rest[1:], "=")
		if !ok || strings.ContainsAny(name, ":;\"") {
			return p, fmt.Errorf("a parameter of %.32s is not NAME=VALUE", p.name)
		}
		var value string
		if value, rest, ok = paramValue(after); !ok {
			return p, fmt.Errorf("the parameter %.32s of %.32s does not end", name, p.name)
		}
		if p.params == nil {
			p.params = map[string]string{}
		}
		p.params[strings.ToUpper(name)] = value
	}
	value, ok := strings.CutPrefix(rest, ":")
	if !ok {
		return p, fmt.Errorf("%.32s has no value; a colon must come before it", p.name)
	}
	p.value = value
	return p, nil
}

// paramValue reads the value of a parameter, the first of a list, up to the ";" or ":" after it.
func paramValue(s string) (value, rest string, ok bool) {
	for first := true; ; first = false {
		var v string
		if quoted, isQuoted := strings.CutPrefix(s, `"`); isQuoted {
			end := strings.IndexByte(quoted, '"')
			if end < 0 {
				return "", "", false
			}
			v, s = quoted[:end], quoted[end+1:]
		} else {
			end := strings.IndexAny(s, ",;:")
			if end < 0 {
				return "", "", false
			}
			v, s = s[:end], s[end:]
		}
		if first {
			value = v
		}
		if s == "" || !strings.ContainsRune(",;:", rune(s[0])) {
			return "", "", false
		}
		if s[0] != ',' {
			return value, s, true
		}
		s = s[1:]
	}
}

// maxSummary is how much of a summary is a window's name, in bytes.
const maxSummary = 100

// text undoes the escapes of a TEXT value, and makes one short line of it.
func (p *property) text() string {
	if p == nil {
		return ""
	}
	s := strings.NewReplacer(`\n`, " ", `\N`, " ", `\,`, ",", `\;`, ";", `\\`, `\`).Replace(p.value[:min(len(p.value), 4*maxSummary)])
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	for len(s) > maxSummary {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

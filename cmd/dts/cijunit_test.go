package main

import (
	"bytes"
	"encoding/xml"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dts"
)

// TestJUnit reads a report back, as those who read them do: names, counts, and the order of what is in a case.
func TestJUnit(t *testing.T) {
	var out bytes.Buffer
	j := newJUnit(&out, junitSuite{Name: `a <"&> b`, At: goldenNow, Took: 1500 * time.Millisecond, Tests: 3, Failed: 1, Skipped: 1})
	j.Case(junitCase{Class: "a", Name: "build", Took: time.Second, Result: ciPassed,
		Output: []junitOutput{{Output: dts.Output{Head: []byte("one\ntwo]]>\x00\x1b[31mred\x1b[0m\x08 \xff</system-out>\n"), Total: 40}}}})
	j.Case(junitCase{Class: "a", Name: "test", Result: ciFailed, Reason: "exit code 3\n\x01\"quoted\"", Output: []junitOutput{
		{"attempt 1: FAILED", dts.Output{Head: []byte("first"), Total: 5}},
		{"attempt 2: FAILED", dts.Output{Head: []byte("head"), Tail: []byte("tail"), Total: 8 + 3000}}}})
	j.Case(junitCase{Class: "a", Name: "publish", Result: ciSkipped, Reason: "test failed"})
	if err := j.End(); err != nil {
		t.Fatal(err)
	}
	type message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *message `xml:"failure"`
		Skipped *message `xml:"skipped"`
		Output  string   `xml:"system-out"`
	}
	type suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		At       string     `xml:"timestamp,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	var got struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []suite  `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v:\n%s", err, &out)
	}
	want := []suite{{`a <"&> b`, 3, 1, 0, 1, "1.500", "2026-03-01T12:00:00", []testcase{
		{"a", "build", "1.000", nil, nil, "one\ntwo]]>red \uFFFD</system-out>\n"},
		{"a", "test", "0.000", &message{"exit code 3\n\"quoted\"", "exit code 3\n\"quoted\""}, nil,
			"--- attempt 1: FAILED\nfirst\n--- attempt 2: FAILED\nhead\n[dts: 2.9 KiB are not kept]\ntail\n"},
		{"a", "publish", "0.000", nil, &message{"test failed", ""}, ""},
	}}}
	if diff := cmp.Diff(want, got.Suites); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	junitSchema(t, out.Bytes())
}

// junitSchema checks that a report has only what junit-10.xsd allows: which elements in which, with which attributes.
func junitSchema(t *testing.T, report []byte) {
	t.Helper()
	allowed := map[string]string{ // by element: its parent, and its attributes
		"testsuites": " name time tests failures errors",
		"testsuite":  "testsuites name tests failures errors group time skipped timestamp hostname id package file log url",
		"testcase":   "testsuite name time classname group",
		"failure":    "testcase type message", "skipped": "testcase type message", "system-out": "testcase",
	}
	parents := []string{""}
	for d := xml.NewDecoder(bytes.NewReader(report)); ; {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch e := token.(type) {
		case xml.StartElement:
			rule, known := allowed[e.Name.Local]
			parent, attributes, _ := strings.Cut(rule, " ")
			if last := parents[len(parents)-1]; !known || parent != last {
				t.Errorf("<%s> in <%s>", e.Name.Local, last)
			}
			for _, a := range e.Attr {
				if !slices.Contains(strings.Fields(attributes), a.Name.Local) {
					t.Errorf("<%s> has the attribute %s", e.Name.Local, a.Name.Local)
				}
			}
			parents = append(parents, e.Name.Local)
		case xml.EndElement:
			parents = parents[:len(parents)-1]
		}
	}
}

// FuzzPlainText: whatever a task prints, XML can hold it.
func FuzzPlainText(f *testing.F) {
	f.Add("plain\x1b[1;31mbold\x1b]0;title\x07\x1b(B\x9b\u0085\uFFFE\xed\xa0\x80")
	f.Fuzz(func(t *testing.T, s string) {
		got := plainText(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		var back struct {
			Text string `xml:",chardata"`
		}
		if err := xml.Unmarshal([]byte("<a>"+textEscapes.Replace(got)+"</a>"), &back); err != nil || back.Text != got {
			t.Errorf("%q comes back as %q: %v", got, back.Text, err)
		}
		var attribute struct {
			Text string `xml:"b,attr"`
		}
		if err := xml.Unmarshal([]byte(`<a b="`+attributeEscapes.Replace(got)+`"/>`), &attribute); err != nil || attribute.Text != got {
			t.Errorf("%q comes back as the attribute %q: %v", got, attribute.Text, err)
		}
	})
}

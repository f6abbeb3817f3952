package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
)

// resourceFlags say what a run takes of its machine.
func resourceFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cpu", Category: category, Usage: "a run takes `N` cores, such as 0.5 or 4; it waits until there are so many left"},
		&cli.StringFlag{Name: "memory", Category: category, Usage: "a run takes a `SIZE` of memory, such as 512M or 2G; it waits until there is so much left"},
		&cli.BoolFlag{Name: "preemptible", Category: category, Usage: "while work of high priority waits for its slot, a command of low priority may be stopped, and continued later"},
	}
}

// warningFlags say what of a run is told of.
func warningFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "warn-late", Category: category, Usage: "warn when it starts a `DURATION` after it was due"},
		&cli.StringFlag{Name: "warn-longer", Category: category, Usage: "warn when a run takes longer than a `DURATION`; it goes on"},
		&cli.StringFlag{Name: "warn-shorter", Category: category, Usage: "warn when a run succeeds in less than a `DURATION`"},
	}
}

// resources reads what a run takes; nil where nothing is said of it.
func resources(c *cli.Context) (*dts.Resources, error) {
	var r dts.Resources
	if text := c.String("cpu"); c.IsSet("cpu") {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n > 0) || n > dts.MaxCPU {
			return nil, usagef("--cpu: %q is not a number of cores; write it like 0.5 or 4", clip(clean(text), 20))
		}
		r.CPU = n
	}
	if text := c.String("memory"); c.IsSet("memory") {
		n, err := parseMiB(text)
		if err != nil {
			return nil, usagef("--memory: %s", err)
		}
		r.MemoryMB = n
	}
	if r == (dts.Resources{}) {
		return nil, nil
	}
	return &r, nil
}

// parseMiB reads a size of memory in MiB, rounded up: 512M, 2G, 1.5GiB.
func parseMiB(text string) (int64, error) {
	s := strings.ToUpper(strings.TrimSpace(text))
	s = strings.TrimSuffix(strings.TrimSuffix(s, "B"), "I")
	factor := 0.0
	if s != "" {
		factor = map[byte]float64{'K': 1.0 / 1024, 'M': 1, 'G': 1024, 'T': 1 << 20}[s[len(s)-1]]
	}
	if factor == 0 {
		return 0, fmt.Errorf("%q needs a unit; write it like 512M or 2G", clip(clean(text), 20))
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(s[:len(s)-1]), 64)
	if err != nil || !(n > 0) || n*factor > dts.MaxMemoryMB {
		return 0, fmt.Errorf("%q is not a size of memory; write it like 512M or 2G", clip(clean(text), 20))
	}
	return int64(math.Ceil(n * factor)), nil
}

// resourceWords says what a run takes; "" for nothing.
func resourceWords(r *dts.Resources) string {
	var list []string
	if r != nil && r.CPU > 0 {
		cores := " cores"
		if r.CPU == 1 {
			cores = " core"
		}
		list = append(list, number(r.CPU, 3)+cores)
	}
	if r != nil && r.MemoryMB > 0 {
		list = append(list, size(r.MemoryMB<<20)+" of memory")
	}
	return strings.Join(list, ", ")
}

// warnLimits says what of a run is told of; "" for nothing.
func warnLimits(s *dts.Spec) string {
	var list []string
	for _, x := range []struct {
		words   string
		seconds float64
	}{{"starts more than %s late", s.WarnLateSeconds}, {"takes more than %s", s.WarnLongerSeconds}, {"succeeds in less than %s", s.WarnShorterSeconds}} {
		if x.seconds > 0 {
			list = append(list, fmt.Sprintf(x.words, span(time.Duration(x.seconds*float64(time.Second)))))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "when it " + strings.Join(list, ", or ")
}

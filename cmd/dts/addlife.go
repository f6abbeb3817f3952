package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

// onceFlags are those of `dts add` that only a task that runs once has, besides when.
func onceFlags() []cli.Flag {
	const category = "After other tasks, and duplicates"
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "after", Category: category, Usage: "start when the task `NAME|ID` has succeeded; NAME:must-finish when it has ended, NAME:must-fail when it has failed; can be repeated"},
		&cli.BoolFlag{Name: "any", Category: category, Usage: "one of them is enough"},
		&cli.StringFlag{Name: "on-dependency-failure", Category: category, Usage: "when that cannot be any more, `M`: skip it, or fail; default: skip"},
		&cli.StringFlag{Name: "dedupe", Category: category, Usage: "at most one unfinished task has the `KEY`: the new one is refused; KEY:keep-first keeps the other and adds nothing, KEY:replace cancels the other"},
	}
}

// onlyOnce lists the flags that a recurring task cannot have, and what to say of them.
var onlyOnce = []struct{ flag, instead string }{
	{"expires", "; give --end to end a schedule"}, {"after", ""}, {"any", ""}, {"on-dependency-failure", ""}, {"dedupe", "; see --overlap"},
}

// dedupeWords are the ways to write what becomes of duplicates.
var dedupeWords = map[string]dts.DedupePolicy{"reject": dts.DedupeReject, "keep_first": dts.DedupeKeepFirst, "replace": dts.DedupeReplace}

// cutPolicy splits off what becomes of duplicates: `report:replace`. A key that ends in another word stays whole.
func cutPolicy(text string) (key string, p dts.DedupePolicy) {
	if i := strings.LastIndexByte(text, ':'); i > 0 {
		if p, ok := dedupeWords[strings.ReplaceAll(strings.ToLower(text[i+1:]), "-", "_")]; ok {
			return text[:i], p
		}
	}
	return text, ""
}

// once reads them. What the task is to wait for is found later: see dependsOn.
func once(c *cli.Context, q *api.TaskRequest) (err error) {
	if c.IsSet("dedupe") {
		if q.DedupeKey, q.DedupePolicy = cutPolicy(c.String("dedupe")); q.DedupeKey == "" {
			return usagef("--dedupe: is empty; give a key")
		}
	}
	if !c.IsSet("after") {
		for _, flag := range []string{"any", "on-dependency-failure"} {
			if c.IsSet(flag) {
				return usagef("--%s: means nothing without --after", flag)
			}
		}
		return nil
	}
	if c.Bool("any") {
		q.DependsMode = dts.DependsAny
	}
	q.OnDependencyFailure, err = choice(c, "on-dependency-failure", map[string]dts.DependencyFailure{"skip": dts.SkipOnFailure, "fail": dts.FailOnFailure})
	return err
}

// dependsOn finds what a new task is to wait for. Without a server only ids can be given: nobody can look for a name.
func (w *adder) dependsOn(ctx context.Context, list []string) ([]dts.DependsOn, error) {
	if w.off == nil {
		return w.l.after(ctx, list)
	}
	var after []dts.DependsOn
	for _, text := range list {
		id, t := cutType(text)
		if !dts.IsID(id) {
			return nil, usagef("--after: without a server give ids; %q is not one", clip(clean(id), 40))
		}
		after = append(after, dts.DependsOn{TaskID: id, Type: t})
	}
	return after, nil
}

// Package difftest compares what sched/cron answers with what others answer, over random expressions, zones and
// instants, most of them around changes of a zone's clock. It holds tests alone, and promises that every difference
// between dts and another scheduler has a name here and a line in docs/time.md: a difference that no rule explains
// fails.
//
// There are three others. The oracle is brute force: it looks at every second or minute, knows an expression only as
// what was made before it was written down, and imports nothing of sched/cron. It is also how the others are
// understood: with its rules changed one by one it must say exactly what they say. The others are croner, a
// JavaScript library with croner's own zone data, and `systemd-analyze calendar`, with those of the C library.
//
// DTS_DIFF_CASES is how many cases each comparison has, DTS_DIFF_FROM the seed, a number or "random". DTS_REQUIRE_DIFF=1
// makes a tool that is missing a failure.
package difftest

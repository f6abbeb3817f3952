package api

import (
	"strconv"

	"dts"
)

// dedupe checks what a task of a bulk request says of duplicates. keys has the dedupe keys of those before it.
func (f *fieldErrors) dedupe(i int, t *dts.Task, keys map[string]int) {
	if t == nil || t.DedupeKey == "" {
		return
	}
	field := "tasks[" + strconv.Itoa(i) + "]."
	if t.DedupePolicy == dts.DedupeReplace {
		f.add(field+"dedupe_policy", "REPLACE is for a request with a single task; use REJECT or KEEP_FIRST")
	}
	if first, is := keys[t.DedupeKey]; !is {
		keys[t.DedupeKey] = i
	} else if t.DedupePolicy == dts.DedupeReject {
		f.add(field+"dedupe_key", "is that of tasks[%d] too; use dedupe_policy KEEP_FIRST, or other keys", first)
	}
}

package store

// What a backend may do to a group of statements where each of them is dear, as where it goes over the network as text and
// is compiled each time.

// Many returns the text that does for many rows what a statement with the given text does for one; "" when there is
// none. It has one parameter: a JSON array that holds the Args of each row as an array. Neighbours in a batch with
// the same text may be run as one: they do not depend on each other, and nothing hangs on how many rows one changed.
func Many(sql string) string {
	switch sql {
	case insertTask:
		return insertTasks
	case endAlone:
		return endTasks
	}
	return ""
}

// Once reports that of equal statements with this text, in all batches that are applied together, the first is
// enough: it asserts what no such batch changes.
func Once(sql string) bool { return sql == assertFence }

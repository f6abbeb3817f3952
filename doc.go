// Package dts holds the nouns and the rules of the dts task scheduler: tasks, recurring tasks, attempts,
// targets, their states, what each verb does in each state, error codes and ids.
//
// It uses the standard library only and does no I/O. Every other package speaks in these types:
// the store keeps them, the scheduler moves them through their states, the web serves them as JSON.
// The JSON tags here are the REST API's field names.
//
// All times are UTC and whole microseconds; the store keeps them as integers.
package dts

//go:build !race

package cron

// slower is 1: without the race detector the limits of time count as they are.
const slower = 1

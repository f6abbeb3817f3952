//go:build race

package cron

// slower is by how much the race detector stretches the limits of time that tests hold.
const slower = 50

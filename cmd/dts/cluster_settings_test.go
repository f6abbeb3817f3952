package main_test

import (
	"os"
	"strconv"
	"testing"
)

// How many faults a test of a cluster goes through, and from how many on the long ones are as long as they should.
const (
	shortFaults = 13
	longFaults  = 100
)

// faultsAsked reads DTS_CLUSTER_FAULTS.
func faultsAsked(t *testing.T, otherwise int) int {
	t.Helper()
	v := os.Getenv("DTS_CLUSTER_FAULTS")
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("DTS_CLUSTER_FAULTS is %q; give a number of at least 1", v)
	}
	return n
}

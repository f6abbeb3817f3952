package main_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// longFaults is from how many faults on a test of a cluster is a long one.
const longFaults = 100

// faultsAsked reads DTS_CLUSTER_FAULTS, how many faults a cluster goes through; 0 when it is not set.
func faultsAsked(t *testing.T) int {
	t.Helper()
	v := os.Getenv("DTS_CLUSTER_FAULTS")
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("DTS_CLUSTER_FAULTS is %q; give a number of at least 1", v)
	}
	return n
}

// clusterSeed reads DTS_CLUSTER_SEED, and prints the seed.
func clusterSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64N(1e9)
	if v := os.Getenv("DTS_CLUSTER_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("DTS_CLUSTER_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("DTS_CLUSTER_SEED=%d", seed)
	return seed
}

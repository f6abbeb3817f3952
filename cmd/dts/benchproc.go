package main

import "time"

// processUsage is what a process has used of the machine since it began.
type processUsage struct {
	Resident     int64         // bytes in memory now
	PeakResident int64         // the most that it ever was
	CPU          time.Duration // of all its threads, in steps of 10 ms
	Switches     int64         // voluntary context switches of the threads that it has now: each wake-up ends one
}

// megabytes writes bytes as a benchmark shows them.
func megabytes(n int64) float64 { return float64(n) / 1e6 }

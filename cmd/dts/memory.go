package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	memoryLooked = 20 * time.Second
	memorySpare  = 24 << 20 // what the heap may hold beyond twice what lives

	// garbageAllowed may pile up before it is collected, or twice what lives, if that is more. What lives is mostly a
	// few megabytes, and collecting at every doubling of that costs a tenth of the throughput. Where 150,000 tasks
	// are due soon, collecting half as often halves the 99th percentile of lateness.
	garbageAllowed = 48 << 20
)

// keepMemorySmall paces the garbage collector, and gives back to the system soon what a burst, such as a large bulk
// request, leaves behind. GOGC and GOMEMLIMIT win.
func keepMemorySmall(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		paceGC()
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(512 << 20)
	}
	go func() {
		tick := time.NewTicker(memoryLooked)
		defer tick.Stop()
		var live uint64
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.HeapSys-m.HeapReleased > 2*live+memorySpare {
				debug.FreeOSMemory()
				runtime.ReadMemStats(&m)
				live = m.HeapAlloc
			}
		}
	}()
}

// paceGC sets GOGC, and again after each collection, by what lived then.
func paceGC() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	set := uint64(0)
	pace := func() {
		metrics.Read(live)
		percent := min(max(garbageAllowed*100/max(live[0].Value.Uint64(), 1), 200), 2000)
		if percent < set*9/10 || percent > set*11/10 { // not for less: it stops the world
			set = percent
			debug.SetGCPercent(int(percent))
		}
	}
	pace()
	afterEachGC(pace)
}

func afterEachGC(f func()) {
	type sentinel [16]byte // nothing refers to it: the next collection finds it
	runtime.AddCleanup(new(sentinel), func(struct{}) {
		f()
		afterEachGC(f)
	}, struct{}{})
}

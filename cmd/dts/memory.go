package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	memoryLooked = 20 * time.Second
	memorySpare  = 24 << 20 // what the heap may hold beyond twice what lives
)

// keepMemorySmall lets garbage pile up to four times what lives, as long as it all stays small: what lives is a
// few megabytes, and collecting it at every doubling costs a tenth of the throughput. What a burst, such as a
// large bulk request, leaves behind goes back to the system soon after. GOGC and GOMEMLIMIT win.
func keepMemorySmall(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
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

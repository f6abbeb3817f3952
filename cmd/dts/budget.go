package main

import (
	"runtime"

	"github.com/urfave/cli/v2"

	"dts"
)

// budgets returns what a server has for tasks that ask for cores or memory: what it was told, else the cores of the
// machine and 80% of its memory, or of what a control group leaves of both. Memory is in MiB, 0 where it is not known.
func budgets(c *cli.Context, conf *config) (cpu float64, memoryMB int64, err error) {
	all, memoryMB := machineBudget()
	cpu = setting(c, "cpu-budget", c.Float64, conf.CPUBudget, all)
	if !(cpu > 0 && cpu <= dts.MaxCPU) {
		return 0, 0, usagef("--cpu-budget: is %v; use more than 0, and at most %v", cpu, dts.MaxCPU)
	}
	size := setting(c, "memory-budget", c.String, conf.MemoryBudget, "")
	if size == "" {
		return cpu, memoryMB, nil
	}
	if memoryMB, err = parseMiB(size); err != nil {
		return 0, 0, usagef("--memory-budget: %s", err)
	}
	return cpu, memoryMB, nil
}

// machineBudget is what the machine has for tasks.
func machineBudget() (cpu float64, memoryMB int64) {
	return float64(runtime.GOMAXPROCS(0)), machineMemory() / 5 * 4 >> 20
}

package main

import "testing"

func TestMachineMemory(t *testing.T) {
	if n := machineMemory(); n < 64<<20 || n > 1<<50 {
		t.Errorf("this machine has %d bytes of memory", n)
	}
}

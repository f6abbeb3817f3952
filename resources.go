package dts

// Limits of what a task may ask of its machine.
const (
	MaxCPU      = 4096.0
	MaxMemoryMB = 64 << 20 // 64 TiB
)

// Resources is what a run takes of its machine. It waits until the node has so much left, and has it until it ends.
type Resources struct {
	CPU      float64 `json:"cpu,omitempty" doc:"cores, such as 0.5 or 4"`
	MemoryMB int64   `json:"memory_mb,omitempty" doc:"in MiB"`
}

func (r *Resources) normalize(f *fieldErrors) {
	if r == nil {
		return
	}
	if r.CPU < 0 || r.CPU > MaxCPU || r.CPU != r.CPU {
		f.add("resources.cpu", "%v is out of range; use 0 to %v", r.CPU, MaxCPU)
	}
	if r.MemoryMB < 0 || r.MemoryMB > MaxMemoryMB {
		f.add("resources.memory_mb", "%d is out of range; use 0 to %d", r.MemoryMB, MaxMemoryMB)
	}
}

package dts

import (
	"context"
	"time"
)

// SchedulerStatus is what one node's scheduler says of itself.
type SchedulerStatus struct {
	Node           string          `json:"node"`
	Version        string          `json:"version"`
	StartedAt      time.Time       `json:"started_at"`
	Now            time.Time       `json:"now"`
	Timer          string          `json:"timer" doc:"timerfd, or portable where that is refused"`
	Ready          bool            `json:"ready"`
	NotReady       []string        `json:"not_ready,omitempty" doc:"why it is not ready"`
	Draining       bool            `json:"draining,omitempty"`
	Shards         []ShardStatus   `json:"shards"`
	HeapSize       int             `json:"heap_size" doc:"tasks held in memory until they are due"`
	Watermark      time.Time       `json:"watermark,omitzero" doc:"tasks due later stay in the store; absent: none do"`
	LastScanAt     time.Time       `json:"last_scan_at,omitzero"`
	NextWakeAt     time.Time       `json:"next_wake_at,omitzero"`
	Claimed        int             `json:"claimed" doc:"taken from the store, not yet due"`
	Pools          []PoolStatus    `json:"pools"`
	Resources      *ResourceStatus `json:"resources,omitempty" doc:"for tasks that ask for some; absent where the server has no budget"`
	Hosts          []HostStatus    `json:"hosts,omitempty" doc:"HTTP hosts that are backed off, at most 100"`
	HostsBackedOff int             `json:"hosts_backed_off" doc:"how many there are"`
	UnwrittenRuns  int             `json:"unwritten_runs" doc:"results on their way to the disk"`
	LagUS          int64           `json:"lag_us" doc:"how late the oldest due task that has not started is, in microseconds"`
	ClockSteps     int64           `json:"clock_steps" doc:"times the wall clock was stepped since the start"`
	Clock          *ClockStatus    `json:"clock,omitempty" doc:"what is known of the clock"`
	ClockHeld      string          `json:"clock_held,omitempty" doc:"why the clock is not believed and firing is held"`
	ActivePaused   int             `json:"paused_recurring_tasks"`
	RetainedAt     time.Time       `json:"retained_at,omitzero" doc:"when retention had last deleted all that is not to be kept; absent: not since this server began to see to it"`
	StoreError     string          `json:"store_error,omitempty" doc:"the last write that failed, until one succeeds"`
	StoreErrorFrom time.Time       `json:"store_error_since,omitzero"`
	Nodes          []NodeStatus    `json:"nodes,omitempty" doc:"the servers that share the schedule, as this one last saw them; absent where it is alone"`
	Lease          *LeaseStatus    `json:"lease,omitempty" doc:"until when this server may start tasks; absent where it is alone"`
}

// NodeStatus is one server of a cluster, as the one that answers last saw it.
type NodeStatus struct {
	ID             string  `json:"id"`
	Address        string  `json:"address" doc:"where the other servers reach it"`
	Version        string  `json:"version"`
	State          string  `json:"state" enum:"ALIVE,LEAVING,LEFT,DEAD"`
	Shards         int     `json:"shards" doc:"how many of the 64 shards it holds"`
	SeenSecondsAgo float64 `json:"seen_seconds_ago" doc:"since its last beat was seen"`
	ClockSkewMS    int64   `json:"clock_skew_ms" doc:"how far its clock is ahead of the clock of the server that answers, in milliseconds; it is asked every 10 s, and half of the round trip is the error"`
	Self           bool    `json:"self,omitempty" doc:"it is the server that answers"`
}

// LeaseStatus says how long a server may go on starting tasks without a sign from the database.
type LeaseStatus struct {
	SecondsLeft float64 `json:"seconds_left" doc:"0: it has run out, and nothing is started until the database answers"`
}

// PoolStatus is one kind of slot: HTTP_CALLBACK or COMMAND.
type PoolStatus struct {
	TargetType TargetType `json:"target_type"`
	Slots      int        `json:"slots"`
	Running    int        `json:"running"`
	Stopped    int        `json:"stopped,omitempty" doc:"of those running, commands that stand while others of high priority have their slots"`
	Ready      int        `json:"ready" doc:"due, waiting for a slot"`
	Parked     int        `json:"parked,omitempty" doc:"due, waiting for resources of this server, or for a host that is backed off"`
}

// ResourceStatus is what a server has for tasks with resources, and what those that run have of it.
type ResourceStatus struct {
	CPU          float64 `json:"cpu" doc:"cores; 0: no limit"`
	CPUUsed      float64 `json:"cpu_used"`
	MemoryMB     int64   `json:"memory_mb" doc:"in MiB; 0: no limit"`
	MemoryMBUsed int64   `json:"memory_mb_used"`
	Waiting      int     `json:"waiting" doc:"tasks that wait for resources"`
}

// HostStatus is an HTTP host that is called less often at once, because it is slow or refuses calls.
type HostStatus struct {
	Host    string    `json:"host" doc:"as scheme://host:port"`
	Queue   string    `json:"queue" doc:"whose calls these are: each queue is judged by itself"`
	Limit   int       `json:"limit" doc:"calls to it that may be in flight"`
	Running int       `json:"running" doc:"that are"`
	Waiting int       `json:"waiting" doc:"tasks that wait for it"`
	Since   time.Time `json:"since"`
	Reason  string    `json:"reason" enum:"slow,refused" doc:"why it was backed off last"`
}

// ShardStatus is a run of shards that one node holds at one term.
type ShardStatus struct {
	From int   `json:"from"`
	To   int   `json:"to"`
	Term int64 `json:"term"`
}

// Tail reads an attempt's output while it is written. Offsets count the bytes that the attempt has written
// in all. Read blocks until there is something after offset, the attempt has ended, or ctx is done. Where
// bytes after offset were dropped to keep within OutputKept, it goes on at the first byte that is left.
type Tail interface {
	Read(ctx context.Context, offset int64) (chunk []byte, next int64, done bool, err error)
}

package dts

import "time"

// Node is one dts server.
type Node struct {
	ID          string // of its data directory
	Incarnation string // of this start: a new one each time
	Address     string // where other servers reach it, a URL; "" when it is alone
	Version     string
	BootID      string
	State       NodeState
	Beat        int64 // how many beats it has sent
	StartedAt   time.Time
	SeenAt      time.Time // its own clock at the last beat
}

// NodeState says whether a server counts as one that runs.
type NodeState string

const (
	NodeAlive   NodeState = "ALIVE"
	NodeLeaving NodeState = "LEAVING" // it lets its runs end, and takes nothing new
	NodeLeft    NodeState = "LEFT"    // it has stopped
	NodeDead    NodeState = "DEAD"    // others saw that it did not beat
)

// Runs reports whether a server in this state may still write what becomes of its runs.
func (s NodeState) Runs() bool { return s == NodeAlive || s == NodeLeaving }

// Members is who shares the schedule, and who holds which shard, at one instant.
type Members struct {
	Nodes   []Node // also those that left, by id
	Holders [Shards]Holder
}

// Placement is who does what in a cluster, as one server last saw it.
type Placement struct {
	Self    string         // this server's id
	Nodes   []Node         // those that live, this one too, by id
	Holders [Shards]string // who holds each shard; "": nobody, or a server that does not live
}

// Node returns a server that lives; found is false when it is not one of those.
func (p *Placement) Node(id string) (n Node, found bool) {
	for _, n := range p.Nodes {
		if n.ID == id {
			return n, true
		}
	}
	return Node{}, false
}

package dts

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

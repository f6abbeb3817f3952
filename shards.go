package dts

import "math/bits"

// Shards is the number of virtual shards that tasks are spread over.
const Shards = 64

// ShardSet is a set of shards: bit n stands for shard n.
type ShardSet uint64

// AllShards holds every shard.
const AllShards = ^ShardSet(0)

// SetOf returns the set of the shards.
func SetOf(shards ...int) (s ShardSet) {
	for _, n := range shards {
		s |= 1 << n
	}
	return s
}

// Has reports whether the shard is in the set.
func (s ShardSet) Has(shard int) bool { return s>>shard&1 == 1 }

// Len returns how many shards the set holds.
func (s ShardSet) Len() int { return bits.OnesCount64(uint64(s)) }

// List returns the shards of the set, the lowest first.
func (s ShardSet) List() []int {
	list := make([]int, 0, s.Len())
	for n := range Shards {
		if s.Has(n) {
			list = append(list, n)
		}
	}
	return list
}

// ShardOf returns the shard of an id: where a task or recurring task lies unless its creator prefers another one. A
// recurring task's tasks all take its shard.
func ShardOf(id string) int {
	h := uint32(2166136261) // FNV-1a
	for i := range len(id) {
		h = (h ^ uint32(id[i])) * 16777619
	}
	return int(h>>16^h) & (Shards - 1)
}

// Terms is the term at which a server holds each shard; 0 where it does not.
type Terms [Shards]int64

// Held returns the shards that are held.
func (t *Terms) Held() (s ShardSet) {
	if t == nil {
		return 0
	}
	for n, term := range t {
		if term != 0 {
			s |= 1 << n
		}
	}
	return s
}

// Fence is what the writer of a batch says that it is: a server that lives, under this incarnation, and that holds
// the shards of its batch at these terms. A batch whose fence does not hold is refused whole, so a server that was
// declared dead, or lost a shard, cannot start, finish, change or plan anything there.
type Fence struct {
	Node        string
	Incarnation string
	Terms       *Terms // nil: it holds none
	Alone       bool   // no other server can hold anything: what is only inserted needs no check
}

// Term returns the term at which the shard is held; 0 when it is not.
func (f Fence) Term(shard int) int64 {
	if f.Terms == nil {
		return 0
	}
	return f.Terms[shard]
}

// Holder is who holds a shard. An empty Node means nobody; the term is then that of the last one.
type Holder struct {
	Node string
	Term int64
}

// Take is a shard that changes its holder: From is what must still be there. The new term is From.Term + 1.
type Take struct {
	Shard int
	From  Holder
}

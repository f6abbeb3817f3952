package main_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The model of what servers may do to each other's shards: one shard with one task, and every server's row in the
// table of nodes. A history is linearizable if each of its operations can be given one moment between its call
// and its answer, so that in that order each did what this model does and saw what this model shows.

// claimants is how many servers there are; nobody is the holder of a free shard.
const (
	claimants = 3
	nobody    = -1
)

// claimState is everything that the operations on one shard depend on. Values of it can be compared.
type claimState struct {
	nodes  [claimants]claimNode
	holder int
	term   int64
	task   claimTask
}

type claimNode struct {
	incarnation int // 0: it never registered
	alive       bool
	beat        int64
}

// claimTask is a task of the shard that is tried for ever.
type claimTask struct {
	attempts int
	running  bool
	by       int // with term: who started the attempt that runs
	term     int64
}

// claimOp is what an operation was asked to do.
type claimOp struct {
	kind        string
	by          int
	incarnation int
	shard       int // nobody: the operation is about the servers

	other  int       // declare: who is dead
	seen   claimNode // declare: what it must still be
	beat   int64     // beat
	holder int       // take: what must still be there
	term   int64     // take: the same; release, start and end: the term under which the shard is held
	number int       // start, end: the attempt
}

// claimAnswer is what came of it. An operation without an answer may have happened, or happen later.
type claimAnswer struct {
	known bool
	ok    bool
	// What a read showed.
	node   claimNode
	holder int
	term   int64
	task   claimTask
}

// claimModel checks each shard by itself, together with all that happened to the servers.
var claimModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		shards := map[int]bool{}
		for _, o := range history {
			shards[o.Input.(claimOp).shard] = true
		}
		delete(shards, nobody)
		var parts [][]porcupine.Operation
		for shard := range shards {
			var part []porcupine.Operation
			for _, o := range history {
				if k := o.Input.(claimOp).shard; k == shard || k == nobody {
					part = append(part, o)
				}
			}
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return claimState{holder: nobody} },
	Step: func(state, input, output any) (bool, any) {
		s, o, a := state.(claimState), input.(claimOp), output.(claimAnswer)
		switch o.kind {
		case "see node":
			return a.node == s.nodes[o.other], s
		case "see shard":
			return a.holder == s.holder && a.term == s.term, s
		case "see task":
			return a.task == s.task, s
		}
		next, ok := s.apply(o)
		if !ok {
			next = s
		}
		return !a.known || a.ok == ok, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// apply does what the operation asks for; false means that it is refused.
func (s claimState) apply(o claimOp) (claimState, bool) {
	me := &s.nodes[o.by]
	if o.kind == "register" {
		*me = claimNode{incarnation: o.incarnation, alive: true}
		return s, true
	}
	if !me.alive || me.incarnation != o.incarnation {
		return s, false
	}
	held := s.holder == o.by && s.term == o.term
	switch o.kind {
	case "beat":
		me.beat = o.beat
	case "declare":
		if n := &s.nodes[o.other]; *n == o.seen && n.alive {
			n.alive = false
		} else {
			return s, false
		}
	case "take":
		if s.holder != o.holder || s.term != o.term || s.holder != nobody && s.holder != o.by && s.nodes[s.holder].alive {
			return s, false
		}
		s.holder, s.term = o.by, o.term+1
	case "release":
		if !held {
			return s, false
		}
		s.holder = nobody
	case "start": // accepted without an effect where it is not this attempt's turn
		if !held {
			return s, false
		}
		k := &s.task
		if !k.running && k.attempts == o.number-1 {
			*k = claimTask{attempts: o.number, running: true, by: o.by, term: o.term}
		}
	case "end": // by whoever started it, also when the shard has another holder
		k := &s.task
		if k.running && k.attempts == o.number && k.by == o.by && k.term == o.term {
			*k = claimTask{attempts: o.number}
		}
	default:
		panic("no such operation: " + o.kind)
	}
	return s, true
}

// checkClaims returns whether the history is linearizable.
func checkClaims(t *testing.T, history []porcupine.Operation) bool {
	t.Helper()
	begun := time.Now()
	result, info := porcupine.CheckOperationsVerbose(claimModel, history, 2*time.Minute)
	kinds := map[string]int{}
	for _, o := range history {
		in, out := o.Input.(claimOp), o.Output.(claimAnswer)
		switch {
		case !out.known:
			kinds[in.kind+" unknown"]++
		case !out.ok:
			kinds[in.kind+" refused"]++
		default:
			kinds[in.kind]++
		}
	}
	t.Logf("%d operations checked in %.1f s: %v", len(history), time.Since(begun).Seconds(), kinds)
	if result == porcupine.Unknown {
		t.Fatal("the checker could not decide within its limit")
	}
	if result == porcupine.Illegal {
		for _, part := range info.PartialLinearizations() {
			longest := 0
			for _, l := range part {
				longest = max(longest, len(l))
			}
			t.Logf("a shard's history can be ordered up to operation %d", longest)
		}
	}
	return result == porcupine.Ok
}

// TestClaimModel: the checker accepts what may happen, and refuses what may not.
func TestClaimModel(t *testing.T) {
	done := claimAnswer{known: true, ok: true}
	refused := claimAnswer{known: true}
	op := func(call, back int64, o claimOp, a claimAnswer) porcupine.Operation {
		return porcupine.Operation{ClientId: o.by, Input: o, Call: call, Output: a, Return: back}
	}
	take := func(by int, holder int, term int64) claimOp {
		return claimOp{kind: "take", by: by, incarnation: 1, holder: holder, term: term}
	}
	both := []porcupine.Operation{
		op(1, 2, claimOp{kind: "register", by: 0, incarnation: 1, shard: nobody}, done),
		op(3, 4, claimOp{kind: "register", by: 1, incarnation: 1, shard: nobody}, done),
	}
	for _, c := range []struct {
		name string
		list []porcupine.Operation
		want bool
	}{
		{"one of two takes a free shard", []porcupine.Operation{op(5, 8, take(0, nobody, 0), done), op(6, 7, take(1, nobody, 0), refused)}, true},
		{"both take it", []porcupine.Operation{op(5, 8, take(0, nobody, 0), done), op(6, 7, take(1, nobody, 0), done)}, false},
		{"from one that lives", []porcupine.Operation{op(5, 6, take(0, nobody, 0), done), op(7, 8, take(1, 0, 1), done)}, false},
		{"a take without an answer happens later", []porcupine.Operation{op(5, math.MaxInt64, take(0, nobody, 0), claimAnswer{}),
			op(7, 8, take(1, nobody, 0), refused)}, true},
		{"a start after the loss", []porcupine.Operation{
			op(5, 6, take(0, nobody, 0), done),
			op(7, 8, claimOp{kind: "declare", by: 1, incarnation: 1, shard: nobody, other: 0, seen: claimNode{incarnation: 1, alive: true}}, done),
			op(9, 10, claimOp{kind: "start", by: 0, incarnation: 1, term: 1, number: 1}, done)}, false},
		{"a read of the past", []porcupine.Operation{op(5, 6, take(0, nobody, 0), done),
			op(7, 8, claimOp{kind: "see shard"}, claimAnswer{known: true, ok: true, holder: nobody})}, false},
	} {
		if got := porcupine.CheckOperations(claimModel, append(both[:2:2], c.list...)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

package main_test

import (
	"fmt"
	"sync"
	"time"

	"dts"
)

// memory is what was seen of the cluster's tables while it ran.
type memory struct {
	lives    map[string]life   // of each server
	attempts map[run]string    // how attempts had ended
	tasks    map[string]string // how tasks had ended
}

// life is a server's newest row in the table of nodes.
type life struct {
	incarnation, state string
	at                 time.Time // when its beat was last seen to move
	beat               float64
}

func newMemory() memory {
	return memory{lives: map[string]life{}, attempts: map[run]string{}, tasks: map[string]string{}}
}

// watch notes which servers count as dead, and what has ended, until the function that it returns is called.
func (c *cluster) watch() (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			c.watchLives()
			if n%20 == 0 {
				c.watchEnds()
			}
		}
	})
	return func() { close(done); all.Wait() }
}

// watchLives looks at the table of nodes. A server lost what it held when it counts as dead, or lives again under a
// new incarnation without having left.
func (c *cluster) watchLives() {
	rows, err := c.ask(`SELECT node_id, incarnation, state, beat FROM nodes`)
	if err != nil {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range rows {
		id, incarnation, state, beat := row[0].(string), row[1].(string), row[2].(string), row[3].(float64)
		was, known := c.seen.lives[id]
		if known && incarnation < was.incarnation { // from a leader that is none any more; incarnations grow
			continue
		}
		is := life{incarnation, state, was.at, beat}
		if !known || was.incarnation != incarnation || was.beat != beat {
			is.at = now
		}
		died := state == string(dts.NodeDead) && was.state != state
		reborn := was.incarnation != incarnation && was.state != string(dts.NodeLeft) && was.state != string(dts.NodeDead)
		if known && (died || reborn) {
			c.deaths = append(c.deaths, span{was.at.Add(-time.Second), now.Add(time.Second)})
			if died {
				c.counts["servers declared dead"]++
			}
		}
		c.seen.lives[id] = is
	}
}

// watchEnds notes what has ended. None of it may ever change.
func (c *cluster) watchEnds() {
	rows, err := c.ask(`SELECT task_id, number, state FROM all_attempts WHERE state <> 'RUNNING'`)
	if err != nil {
		return
	}
	for _, row := range rows {
		r := run{row[0].(string), int(row[1].(float64))}
		c.noteEnd(fmt.Sprintf("attempt %d of task %s", r.attempt, r.task), c.seen.attempts[r], row[2].(string))
		c.seen.attempts[r] = row[2].(string)
	}
	rows, err = c.ask(`SELECT task_id, status || ' after ' || attempts FROM tasks WHERE completed_at IS NOT NULL`)
	if err != nil {
		return
	}
	for _, row := range rows {
		id := row[0].(string)
		c.noteEnd("task "+id, c.seen.tasks[id], row[1].(string))
		c.seen.tasks[id] = row[1].(string)
	}
}

func (c *cluster) noteEnd(what, was, is string) {
	if was != "" && was != is {
		c.found(i5, "%s had ended as %s and is now %s", what, was, is)
	}
}

package exec

import (
	"fmt"
	"sync"
	"syscall"

	"dts"
)

// controls stop and continue a command: they are its dts.Controls. Only its process group is stopped, in one step that no
// fork escapes; a process that has left the group goes on.
type controls struct {
	pgid  int
	limit *timeLimit

	mu      sync.Mutex
	stopped bool
	over    bool // the command has exited or is being ended: its group gets no more signals from here
}

func (c *controls) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return dts.Errorf(dts.ErrConflict, "stop the command: its run is over")
	case c.stopped:
		return nil
	case !c.limit.pause():
		return dts.Errorf(dts.ErrConflict, "stop the command: its time is up")
	}
	if err := syscall.Kill(-c.pgid, syscall.SIGSTOP); err != nil {
		c.limit.resume()
		return fmt.Errorf("stop process group %d: %w", c.pgid, err)
	}
	c.stopped = true
	return nil
}

func (c *controls) Continue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resume()
}

func (c *controls) resume() {
	if !c.stopped || c.over {
		return
	}
	c.stopped = false
	// The group is there as long as the run is not over: its first process is not reaped before. So this fails only
	// where all of its processes now belong to somebody else, who cannot have been stopped either.
	_ = syscall.Kill(-c.pgid, syscall.SIGCONT)
	c.limit.resume()
}

// exited is called when the command has ended by itself: what it has left in the background goes on, if it was stopped.
func (c *controls) exited() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resume()
	c.over = true
}

// end takes the controls away, because the group is about to get signals of its own, or its id passes on to others.
func (c *controls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

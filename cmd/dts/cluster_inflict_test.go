package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"dts"
	"dts/web/api"
)

// inflict breaks something for a while.
func (c *cluster) inflict(tr trouble) {
	begun := time.Now()
	var what string
	if tr.kind.onStore() {
		c.storeBusy.Lock()
		defer c.storeBusy.Unlock()
		what = c.inflictStore(tr)
	} else {
		d := c.nodes[tr.victim]
		d.busy.Lock()
		defer d.busy.Unlock()
		what = d.name + ": " + c.inflictNode(tr, d)
	}
	c.count(string(tr.kind), 1)
	c.t.Logf("%s, in all %4.1f s, %d acknowledged: %s", tr, time.Since(begun).Seconds(), c.load.count(), what)
}

// inflictNode breaks one dts, or its links.
func (c *cluster) inflictNode(tr trouble, d *dtsNode) (what string) {
	switch tr.kind {
	case killNode:
		c.runOn(d)
		c.mark(&c.kills)
		d.end(syscall.SIGKILL)
		time.Sleep(tr.lasts)
		return "killed" + c.comeBack(d)
	case termNode:
		c.runOn(d)
		began := time.Now()
		took, code := d.end(syscall.SIGTERM)
		if code != 0 && !c.ill(began.Add(-20*time.Second), time.Now()) {
			c.found(clean, "%s: exit code %d after SIGTERM", d.name, code)
		}
		time.Sleep(tr.lasts)
		return fmt.Sprintf("ended in %.1f s with exit code %d", took.Seconds(), code) + c.comeBack(d)
	case stopNode, stopNodeLong:
		c.runOn(d)
		c.busyFor(d, tr.lasts)
		d.away.Store(true)
		d.process.Signal(syscall.SIGSTOP)
		time.Sleep(tr.lasts)
		c.mark(&c.thaws)
		d.process.Signal(syscall.SIGCONT)
		d.away.Store(false)
		return "went on"
	case cutStore, cutStoreLong:
		others := []string{"r1", "r2", "r3"}
		if tr.first && tr.kind == cutStore {
			others = others[tr.number%3:][:1]
		}
		c.runOn(d)
		c.busyFor(d, tr.lasts)
		d.away.Store(len(others) > 1)
		defer d.away.Store(false)
		return c.breakLinks(tr, d.name, others)
	case cutPeers:
		others := c.namesBut(d)
		if tr.first {
			others = others[:1]
		}
		return c.breakLinks(tr, d.name, others)
	case cutAll:
		d.away.Store(true)
		defer d.away.Store(false)
		return c.breakLinks(tr, d.name, append(c.namesBut(d), "r1", "r2", "r3"))
	}
	panic("no such fault: " + tr.kind)
}

// runOn lets a server run some commands, so that what happens to it meets them in the middle.
func (c *cluster) runOn(d *dtsNode) {
	for i := range 4 {
		var q api.TaskRequest
		q.Spec = commandSpec(c.runs.argv("3", []string{"none", "child", "session"}[i%3])...)
		q.Name = c.load.name()
		if i == 0 {
			q.Delivery = dts.AtMostOnce
		} else {
			q.Retry = dts.Retry{MaxAttempts: 4, Backoff: dts.Fixed, BaseDelayMS: 200}
		}
		c.load.sendTo(d.api, q)
	}
	time.Sleep(200 * time.Millisecond) // their starts are on the disk
}

// busyFor adds tasks to one server that are due one by one while it is away: others must fire them where they take
// over, and it must not.
func (c *cluster) busyFor(d *dtsNode, lasts time.Duration) {
	for at := time.Second; at < lasts; at += time.Second {
		q := c.load.plain()
		q.Delay = api.Delay(at.String())
		c.load.sendTo(d.api, q)
	}
}

// namesBut are the other dts.
func (c *cluster) namesBut(d *dtsNode) (list []string) {
	for _, o := range c.nodes {
		if o != d {
			list = append(list, o.name)
		}
	}
	return list
}

// comeBack starts a server again.
func (c *cluster) comeBack(d *dtsNode) string {
	began := time.Now()
	if c.launch(d, 60*time.Second) {
		return fmt.Sprintf(", ready again after %.1f s", time.Since(began).Seconds())
	}
	return ", not ready again"
}

// inflictStore breaks nodes of rqlite, or the links between them.
func (c *cluster) inflictStore(tr trouble) (what string) {
	i := tr.victim
	if tr.first || tr.kind == killLeader || tr.kind == stopMost {
		if l := leader(c.stores); l != nil {
			for k, r := range c.stores {
				if r == l {
					i = k
				}
			}
		}
	}
	r, next, last := c.stores[i], c.stores[(i+1)%3], c.stores[(i+2)%3]
	began := time.Now()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sick = append(c.sick, span{began, time.Now().Add(3 * time.Second)}) // an election takes a while
	}()
	switch tr.kind {
	case killStore, killLeader, termStore:
		s := syscall.SIGKILL
		if tr.kind == termStore {
			s = syscall.SIGTERM
		}
		if r.end(s) {
			c.count("rqlited that had to be killed after SIGTERM", 1)
		}
		time.Sleep(tr.lasts)
		r.launch(c.net)
		for end := time.Now().Add(30 * time.Second); !r.ready() && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		return r.name
	case stopStore:
		r.process.Signal(syscall.SIGSTOP)
		time.Sleep(tr.lasts)
		r.process.Signal(syscall.SIGCONT)
		return r.name
	case stopMost:
		r.process.Signal(syscall.SIGSTOP)
		next.process.Signal(syscall.SIGSTOP)
		time.Sleep(tr.lasts)
		r.process.Signal(syscall.SIGCONT)
		next.process.Signal(syscall.SIGCONT)
		return r.name + ", " + next.name
	case cutRaft:
		others := []string{next.name, last.name}
		if tr.number%3 == 0 {
			others = others[:1]
		}
		return c.breakLinks(tr, r.name, others)
	}
	panic("no such fault: " + tr.kind)
}

// breakLinks breaks the links between one process and others for a while.
func (c *cluster) breakLinks(tr trouble, name string, others []string) string {
	for _, o := range others {
		switch tr.way {
		case severed:
			c.net.sever(name, o)
		case silent:
			c.net.silence(name, o)
			c.net.silence(o, name)
		case deaf:
			c.net.silence(o, name)
		case muted:
			c.net.silence(name, o)
		}
	}
	time.Sleep(tr.lasts)
	for _, o := range others {
		c.net.mend(name, o)
	}
	return fmt.Sprintf("%s %s towards %s", name, tr.way, strings.Join(others, ", "))
}

// mark notes the moment of something in a list.
func (c *cluster) mark(list *[]time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, time.Now())
}

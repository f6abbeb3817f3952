package sched

import (
	"math"
	"slices"
	"time"

	"dts"
)

// Resources: a task that asks for cores or memory starts when the server's budget has so much left, and has it until its
// run ends. What does not fit is parked here.

// noOvertaking is how long a task lets smaller ones go before it. Then none with requests starts before it does.
const noOvertaking = 10 * time.Second

// need is what a run takes of the budget.
type need struct {
	cpu    int64 // thousandths of a core
	memory int64 // MiB
	alone  bool  // it asks for more than there is: it runs when no other task with requests does
}

// budget is what a server has for tasks that ask for resources.
type budget struct {
	whole   need // zero: of that there is no limit
	used    need
	runs    int // that have something of it
	parked  [ranks][]*item
	mayOpen bool // something has changed since nothing that is parked was found to fit
}

func newBudget(cpu float64, memoryMB int64) budget {
	return budget{whole: need{cpu: millis(cpu), memory: memoryMB}}
}

// millis rounds up, so that nothing that is asked for is free.
func millis(cpu float64) int64 { return int64(math.Ceil(cpu * 1000)) }

// needOf returns what a task asks for; false when that is nothing, or there is no budget.
func (b *budget) needOf(t *dts.Task) (need, bool) {
	r := t.Resources
	if r == nil || b.whole == (need{}) {
		return need{}, false
	}
	n := need{cpu: millis(r.CPU), memory: r.MemoryMB}
	if n == (need{}) {
		return need{}, false
	}
	n.alone = b.whole.cpu > 0 && n.cpu > b.whole.cpu || b.whole.memory > 0 && n.memory > b.whole.memory
	return n, true
}

// fits reports whether there is room now.
func (b *budget) fits(n need) bool {
	switch {
	case b.runs == 0:
		return true
	case n.alone || b.used.alone:
		return false
	}
	return (b.whole.cpu == 0 || b.used.cpu+n.cpu <= b.whole.cpu) && (b.whole.memory == 0 || b.used.memory+n.memory <= b.whole.memory)
}

// admits reports whether a task may start that was parked first at since, or never. Who has waited long is not overtaken.
func (b *budget) admits(n need, since, now time.Time) bool {
	if since.IsZero() {
		since = now
	}
	w := b.waitedLong(now)
	return b.fits(n) && (w == nil || !w.gates.since.Before(since))
}

func (b *budget) take(n need) {
	b.runs++
	b.used.cpu += n.cpu
	b.used.memory += n.memory
	b.used.alone = n.alone
}

func (b *budget) give(n need) {
	b.runs--
	b.used.cpu -= n.cpu
	b.used.memory -= n.memory
	b.used.alone = false
	b.mayOpen = true
}

func (b *budget) park(it *item) {
	it.gates.inBudget = true
	list := b.parked[it.rank()]
	i := len(list)
	for i > 0 && list[i-1].gates.since.After(it.gates.since) { // it waited at another gate before
		i--
	}
	b.parked[it.rank()] = slices.Insert(list, i, it)
}

func (b *budget) remove(it *item) {
	it.gates.inBudget = false
	list := b.parked[it.rank()]
	if i := slices.Index(list, it); i >= 0 {
		b.parked[it.rank()] = slices.Delete(list, i, i+1)
	}
	b.mayOpen = true
}

// first is what was parked first.
func (b *budget) first() (it *item) {
	for _, list := range b.parked {
		if len(list) > 0 && (it == nil || list[0].gates.since.Before(it.gates.since)) {
			it = list[0]
		}
	}
	return it
}

// waitedLong returns what no other may overtake any more; nil when there is none.
func (b *budget) waitedLong(now time.Time) *item {
	if it := b.first(); it != nil && now.Sub(it.gates.since) >= noOvertaking {
		return it
	}
	return nil
}

// next returns what may start in a pool of those that are parked; nil when nothing may. HIGH comes first.
func (b *budget) next(p *pool, now time.Time) *item {
	if !b.mayOpen {
		return nil
	}
	if it := b.waitedLong(now); it != nil {
		n, _ := b.needOf(it.task)
		fits := b.fits(n)
		b.mayOpen = fits // if it does, it may only be that its pool has no slot
		if fits && it.TargetType == p.kind {
			return it
		}
		return nil
	}
	other := false
	for _, list := range b.parked {
		for _, it := range list {
			n, _ := b.needOf(it.task)
			if !b.fits(n) {
				continue
			}
			if it.TargetType == p.kind {
				return it
			}
			other = true
		}
	}
	b.mayOpen = other
	return nil
}

func (b *budget) waiting() (n int) {
	for _, list := range b.parked {
		n += len(list)
	}
	return n
}

// status is what is left of the budget; nil where there is none.
func (b *budget) status() *dts.ResourceStatus {
	if b.whole == (need{}) {
		return nil
	}
	return &dts.ResourceStatus{
		CPU: float64(b.whole.cpu) / 1000, CPUUsed: float64(b.used.cpu) / 1000,
		MemoryMB: b.whole.memory, MemoryMBUsed: b.used.memory, Waiting: b.waiting(),
	}
}

package sched

import "container/heap"

// dueHeap is a min-heap of items in the order in which they are due. An item knows its place in it.
type dueHeap struct{ list itemList }

type itemList []*item

func (l itemList) Len() int           { return len(l) }
func (l itemList) Less(i, j int) bool { return l[i].Before(l[j].Mark()) }
func (l itemList) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}
func (l *itemList) Push(x any) {
	it := x.(*item)
	it.index = len(*l)
	*l = append(*l, it)
}
func (l *itemList) Pop() any {
	old := *l
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return it
}

func (h *dueHeap) len() int { return len(h.list) }

// top returns the item that is due first; nil when there is none.
func (h *dueHeap) top() *item {
	if len(h.list) == 0 {
		return nil
	}
	return h.list[0]
}

func (h *dueHeap) push(it *item)   { heap.Push(&h.list, it) }
func (h *dueHeap) pop() *item      { return heap.Pop(&h.list).(*item) }
func (h *dueHeap) remove(it *item) { heap.Remove(&h.list, it.index) }

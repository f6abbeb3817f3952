package lanes

// Waits reports whether something waits in a lane that is not of a held flow. It panics if lane is none of the four.
func (q *Queue[T]) Waits(lane Lane) bool { return q.lines[lane].turn != nil }

// PeekFrom returns the value of the next item of one lane; false if nothing waits there but what is of held flows.
func (q *Queue[T]) PeekFrom(lane Lane) (T, bool) {
	if s := q.lines[lane].turn; s != nil {
		return s.front.value, true
	}
	var none T
	return none, false
}

// PopFrom takes that item out, out of turn: the lane is not charged for it, but inside the lane it is the turn of the next
// flow.
func (q *Queue[T]) PopFrom(lane Lane) (T, bool) {
	l := &q.lines[lane]
	if l.turn == nil {
		var none T
		return none, false
	}
	s := l.turn
	l.turn = s.next
	return q.take(s.front), true
}

// Waits reports whether something of the flow waits in a lane, held or not. It panics if lane is none of the four.
func (f *Flow[T]) Waits(lane Lane) bool {
	return f.strands[lane] != nil && f.strands[lane].front != nil
}

// PopFrom takes the flow's first item of a lane out, also where the flow is held; false if there is none.
func (f *Flow[T]) PopFrom(lane Lane) (T, bool) {
	if !f.Waits(lane) {
		var none T
		return none, false
	}
	return f.queue.take(f.strands[lane].front), true
}

package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dts"
)

// outputWait is how long a read of a running attempt's output waits for the runner before it answers with
// what there is.
const outputWait = 100 * time.Millisecond

// output serves GET /tasks/{id}/output.
func (h *Handler) output(c *call, w http.ResponseWriter) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	var f fieldErrors
	number := 0
	if s := c.query.Get("attempt"); s != "" {
		number = f.number("attempt", s, 0, 1_000_000)
	}
	follow := c.query.Get("follow")
	if follow != "" && follow != "0" && follow != "1" {
		f.add("follow", "must be 0 or 1")
	}
	if err := f.err(); err != nil {
		return err
	}
	if follow == "1" {
		return h.followOutput(c, w, id, number)
	}
	a, err := h.outputNow(c, c.p.TenantID, id, number)
	if err != nil {
		return err
	}
	if wantsJSON(c.r.Header.Get("Accept")) {
		return writeJSON(w, http.StatusOK, a.answer(id))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	w.Write(a.out.Head)
	if dropped := a.dropped(); dropped > 0 {
		fmt.Fprintf(w, "\n… %d bytes dropped …\n", dropped)
	}
	w.Write(a.out.Tail)
	return nil
}

// wantsJSON reports whether an Accept header asks for JSON before plain text.
func wantsJSON(accept string) bool {
	json := strings.Index(accept, jsonType)
	plain := strings.Index(accept, "text/plain")
	return json >= 0 && (plain < 0 || json < plain)
}

// attemptOutput is what one attempt has printed so far.
type attemptOutput struct {
	number int
	state  dts.AttemptState
	out    dts.Output
}

func (a *attemptOutput) dropped() int64 {
	return a.out.Total - int64(len(a.out.Head)+len(a.out.Tail))
}

func (a *attemptOutput) answer(id string) OutputAnswer {
	return OutputAnswer{TaskID: id, Attempt: a.number, State: a.state, TotalBytes: a.out.Total, DroppedBytes: a.dropped(),
		Head: strings.ToValidUTF8(string(a.out.Head), "\uFFFD"), Tail: strings.ToValidUTF8(string(a.out.Tail), "\uFFFD")}
}

// outputNow returns the output of an attempt, or of the newest one when number is 0, as far as it is there.
func (h *Handler) outputNow(ctx context.Context, tenant, id string, number int) (*attemptOutput, error) {
	t, err := h.Store.Task(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	list, err := h.Store.Attempts(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if n, tail := h.running(id, number, list); tail != nil {
		out, err := drain(ctx, tail)
		return &attemptOutput{number: n, state: dts.AttemptRunning, out: out}, err
	}
	a := chosen(list, number)
	switch {
	case a == nil && number != 0:
		return nil, dts.Errorf(dts.ErrNotFound, "there is no attempt %d; the task has had %d", number, len(list))
	case a == nil:
		return nil, dts.Errorf(dts.ErrNotFound, "the task has not run yet; it is %s", t.Status)
	}
	out, err := h.stored(ctx, tenant, id, a.Number)
	return &attemptOutput{number: a.Number, state: a.State, out: out}, err
}

// running finds the reader of an attempt that runs here: number, or when that is 0 the newest. The newest
// may not be in the store yet.
func (h *Handler) running(id string, number int, list []*dts.Attempt) (int, dts.Tail) {
	tries := []int{number}
	if number == 0 {
		tries = []int{1}
		if a := newest(list); a != nil {
			tries = []int{a.Number + 1, a.Number}
		}
	}
	for _, n := range tries {
		if tail, ok := h.Outputs.Tail(id, n); ok {
			return n, tail
		}
	}
	return 0, nil
}

func chosen(list []*dts.Attempt, number int) *dts.Attempt {
	if number == 0 {
		return newest(list)
	}
	for _, a := range list {
		if a.Number == number {
			return a
		}
	}
	return nil
}

// stored returns an attempt's output from the store; that of one that printed nothing is empty.
func (h *Handler) stored(ctx context.Context, tenant, id string, number int) (dts.Output, error) {
	out, err := h.Store.Output(ctx, tenant, id, number)
	if dts.CodeOf(err) == dts.ErrNotFound {
		return dts.Output{}, nil
	}
	if err != nil {
		return dts.Output{}, err
	}
	return *out, nil
}

// drain reads what a running attempt has printed so far.
func drain(ctx context.Context, tail dts.Tail) (dts.Output, error) {
	wait, cancel := context.WithTimeout(ctx, outputWait)
	defer cancel()
	var out dts.Output
	gap := false
	for len(out.Head)+len(out.Tail) < 4*dts.OutputKept { // an attempt can print faster than this reads
		chunk, next, done, err := tail.Read(wait, out.Total)
		if wait.Err() == nil && err != nil {
			return out, fmt.Errorf("read the output of a running attempt: %w", err)
		}
		gap = gap || next-int64(len(chunk)) > out.Total
		if gap {
			out.Tail = append(out.Tail, chunk...)
		} else {
			out.Head = append(out.Head, chunk...)
		}
		out.Total = max(next, out.Total)
		if done || err != nil || len(chunk) == 0 {
			break
		}
	}
	return out, ctx.Err()
}

// followOutput streams an attempt's output as it is written, then one "end" event. With number 0 that is
// the attempt that runs, else the last one of a finished task; a task that waits is waited for.
func (h *Handler) followOutput(c *call, w http.ResponseWriter, id string, number int) error {
	if _, err := h.Store.Task(c, c.p.TenantID, id); err != nil {
		return err
	}
	fo := &follower{h: h, tenant: c.p.TenantID, id: id, number: number}
	fo.subscribe()
	defer func() { fo.unsubscribe() }()
	s, end, err := h.openStream(c, w)
	if err != nil {
		return err
	}
	defer end()
	fo.s = s
	if err := fo.follow(); err != nil && s.ctx.Err() == nil {
		if p := ProblemOf(err); p.Status >= http.StatusInternalServerError {
			h.Log.Error("output stream failed", "task_id", id, "error", cause(err))
		}
		s.send("failed", ProblemOf(err)) // it is too late for a status
	}
	return nil
}

// follower is one stream of an attempt's output.
type follower struct {
	h           *Handler
	s           *stream
	tenant, id  string
	number      int // 0 until it is known
	events      <-chan dts.Event
	unsubscribe func()
}

func (f *follower) subscribe() {
	f.events, f.unsubscribe = f.h.Scheduler.Subscribe(f.tenant)
}

// follow waits for the attempt to begin, streams it, waits for its end to be known and tells it.
func (f *follower) follow() error {
	streamed := false
	for {
		t, err := f.h.Store.Task(f.s.ctx, f.tenant, f.id)
		if err != nil {
			return err
		}
		list, err := f.h.Store.Attempts(f.s.ctx, f.tenant, f.id)
		if err != nil {
			return err
		}
		if !streamed {
			if n, tail := f.h.running(f.id, f.number, list); tail != nil {
				f.number = n
				if err := f.live(tail); err != nil {
					return err
				}
				streamed = true
				continue
			}
		}
		a := chosen(list, f.number)
		switch {
		case a != nil && a.State != dts.AttemptRunning && (f.number != 0 || t.Status.Terminal()):
			if !streamed {
				if err := f.kept(a.Number); err != nil {
					return err
				}
			}
			// The attempt may have ended after the task was read.
			if t, err = f.h.Store.Task(f.s.ctx, f.tenant, f.id); err != nil {
				return err
			}
			return f.s.send("end", OutputEnd{Attempt: a.Number, State: a.State, Status: t.Status, Error: a.Error})
		case t.Status.Terminal() && a == nil:
			return f.s.send("end", OutputEnd{Status: t.Status, Error: t.LastError})
		}
		if err := f.wait(); err != nil {
			return err
		}
	}
}

// wait returns when something happened to the task, or after a heartbeat's time, to look again: events are
// not kept, so one can be missed.
func (f *follower) wait() error {
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-f.s.ctx.Done():
			return f.s.ctx.Err()
		case <-beat.C:
			return f.s.beat()
		case e, ok := <-f.events:
			if !ok {
				f.unsubscribe()
				f.subscribe()
				return nil
			}
			if e.TaskID == f.id {
				return nil
			}
		}
	}
}

// live streams a running attempt's output. Heartbeats keep the connection open while it prints nothing.
func (f *follower) live(tail dts.Tail) error {
	text := textStream{s: f.s, number: f.number}
	for {
		ctx, cancel := context.WithTimeout(f.s.ctx, heartbeat)
		chunk, next, done, err := tail.Read(ctx, text.next)
		idle := errors.Is(ctx.Err(), context.DeadlineExceeded)
		cancel()
		if err != nil && !idle {
			return fmt.Errorf("read the output of attempt %s: %w", strconv.Itoa(f.number), err)
		}
		if len(chunk) > 0 || next > text.next {
			if err := text.write(chunk, next); err != nil {
				return err
			}
		} else if idle {
			if err := f.s.beat(); err != nil {
				return err
			}
		}
		if done {
			return text.flush()
		}
	}
}

// kept streams the output of an attempt that has ended.
func (f *follower) kept(number int) error {
	out, err := f.h.stored(f.s.ctx, f.tenant, f.id, number)
	if err != nil {
		return err
	}
	text := textStream{s: f.s, number: number}
	if err := text.write(out.Head, int64(len(out.Head))); err != nil {
		return err
	}
	if err := text.write(out.Tail, out.Total); err != nil {
		return err
	}
	return text.flush()
}

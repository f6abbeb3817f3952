package peers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"dts"
)

// overflow is the last event of a stream whose reader was too slow.
const overflow dts.EventType = "overflow"

// errOverflow is how a stream ends that was too slow.
var errOverflow = errors.New("the stream was too slow: events were dropped")

// maxBatch is how many bytes of events are written at once.
const maxBatch = 64 << 10

// events answers with a stream of the events of one tenant on this server: one line of JSON each. Empty lines are
// signs of life; the first one says that from here on no event is missed.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	if !h.limited(w, r, maxCall) {
		return
	}
	q, _, err := decode(r.Body)
	if err != nil {
		h.refuse(w, http.StatusBadRequest, "the call for events cannot be read: %v", err)
		return
	}
	end, err := h.stream()
	if err != nil {
		h.refuse(w, http.StatusTooManyRequests, "%v", err)
		return
	}
	defer end()
	events, unsubscribe := h.Local.Subscribe(q.Tenant)
	defer unsubscribe()
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	beat := time.NewTicker(beatTime)
	defer beat.Stop()
	line := []byte("\n")
	for {
		rc.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := w.Write(line); err != nil {
			return
		}
		if rc.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			line = []byte("\n")
		case e, open := <-events:
			if line = batch(e, open, events); line == nil {
				if !h.Local.Status().Draining { // else it is not that the reader was slow
					json.NewEncoder(w).Encode(dts.Event{Type: overflow})
				}
				return
			}
		}
	}
}

// batch returns the lines of an event and of those that wait behind it; nil when the subscription has ended before.
func batch(e dts.Event, open bool, more <-chan dts.Event) []byte {
	if !open {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for open && b.Len() < maxBatch {
		enc.Encode(e) // of strings, numbers and times: cannot fail
		select {
		case e, open = <-more: // when it has ended, the next look at it says so again
		default:
			open = false
		}
	}
	return b.Bytes()
}

// events opens a stream of a tenant's events at another server. It calls opened when no event is missed any more, and
// each for each one, and returns when the stream breaks: with errOverflow when events were dropped.
func (c *Client) events(ctx context.Context, n dts.Node, tenant string, opened func(), each func(dts.Event)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(silenceTime, func() { cancel(fmt.Errorf("nothing came for %s", silenceTime)) })
	defer silence.Stop()
	var body bytes.Buffer
	if err := encode(&body, &request{Tenant: tenant}, nil); err != nil {
		return err
	}
	resp, _, err := c.post(ctx, n, eventsPath, "", body.Bytes())
	if err != nil {
		return &noAnswer{n, false, err}
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		silence.Reset(silenceTime)
		if len(lines.Bytes()) == 0 {
			opened()
			continue
		}
		var e dts.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return &noAnswer{n, false, fmt.Errorf("read an event: %w", err)}
		}
		switch e.Type {
		case overflow:
			return errOverflow
		default:
			if e.TenantID == tenant {
				each(e)
			}
		}
	}
	err = lines.Err()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil {
		err = errors.New("the stream has ended")
	}
	return &noAnswer{n, false, err}
}

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"dts"
)

const (
	heartbeat    = 15 * time.Second // so that proxies, and we, notice a peer that is gone
	writeTimeout = 10 * time.Second // of one event: a peer that reads slower than that is gone
)

// stream is an open response of server-sent events (WHATWG HTML, section 9.2).
type stream struct {
	ctx context.Context // done when the caller is gone or the server stops
	w   http.ResponseWriter
	rc  *http.ResponseController
}

// openStream begins a stream. The function that it returns must be called at the end.
func (h *Handler) openStream(c *call, w http.ResponseWriter) (*stream, func(), error) {
	select {
	case h.streams <- struct{}{}:
	default:
		return nil, nil, dts.Errorf(dts.ErrUnavailable, "all %d streams are in use", cap(h.streams))
	}
	ctx, cancel := context.WithCancel(dts.RefuseStale(c)) // a reader who follows could not be told when it gets old
	released := make(chan struct{})
	go func() {
		defer close(released)
		select {
		case <-ctx.Done():
		case <-h.Stopping:
			cancel()
		}
	}()
	s := &stream{ctx: ctx, w: w, rc: http.NewResponseController(w)}
	end := func() {
		cancel()
		<-released
		<-h.streams
	}
	s.rc.SetReadDeadline(time.Time{}) // the server's limits are for requests that end
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // a proxy must pass events on as they come
	w.WriteHeader(http.StatusOK)
	if err := s.write([]byte(": dts\n\n")); err != nil {
		end()
		return nil, nil, err
	}
	return s, end, nil
}

// send writes one event with v as its JSON data.
func (s *stream) send(event string, v any) error {
	var buf bytes.Buffer
	buf.WriteString("event: " + event + "\ndata: ")
	enc := json.NewEncoder(&buf) // one line: JSON escapes line breaks
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	buf.WriteByte('\n')
	return s.write(buf.Bytes())
}

// beat writes a comment, which clients ignore.
func (s *stream) beat() error { return s.write([]byte(":\n\n")) }

func (s *stream) write(b []byte) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}

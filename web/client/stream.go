package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"

	"dts"
	"dts/web/api"
)

// maxLine is how long one line of a stream may be, in bytes.
const maxLine = 4 << 20

// ErrOverflow ends a stream of events when the caller takes them too slowly. Some were missed: look at the
// state anew, then watch again.
var ErrOverflow = errors.New("events came faster than they were taken; some were missed")

// Chunk is one part of an attempt's output, or its end.
type Chunk struct {
	api.OutputChunk
	End *api.OutputEnd // in the last one: how the attempt ended
}

// FollowOutput yields an attempt's output as it is written; the last Chunk has End set. Attempt 0 is the
// one that runs, or the last one of a finished task; a task that has not started is waited for.
func (c *Client) FollowOutput(ctx context.Context, id string, attempt int) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		q := attemptQuery(attempt)
		q.Set("follow", "1")
		ended := false
		err := c.watch(ctx, taskPath(id, "/output"), q, func(event string, data []byte) (bool, error) {
			var chunk Chunk
			var err error
			switch event {
			case "output":
				err = json.Unmarshal(data, &chunk.OutputChunk)
			case "end":
				ended = true
				chunk.End = &api.OutputEnd{}
				err = json.Unmarshal(data, chunk.End)
			case "failed":
				var p api.Problem
				if err = json.Unmarshal(data, &p); err == nil {
					err = &dts.Error{Code: p.Code, Message: p.Detail, Fields: p.Errors}
				}
			default:
				return true, nil
			}
			if err != nil {
				return false, err
			}
			return yield(chunk, nil) && !ended, nil
		})
		if err != nil {
			yield(Chunk{}, err)
		}
	}
}

// Events yields what happens from now on, of one task or one recurring task if given, else of all. It goes
// on until ctx is done or the stream breaks; the error says why it ended.
func (c *Client) Events(ctx context.Context, taskID, recurringID string) iter.Seq2[dts.Event, error] {
	return func(yield func(dts.Event, error) bool) {
		q := url.Values{}
		set(q, "task_id", taskID)
		set(q, "recurring_task_id", recurringID)
		err := c.watch(ctx, "/events", q, func(event string, data []byte) (bool, error) {
			if event == "overflow" {
				return false, ErrOverflow
			}
			var e dts.Event
			if err := json.Unmarshal(data, &e); err != nil {
				return false, err
			}
			return yield(e, nil), nil
		})
		if err != nil {
			yield(dts.Event{}, err)
		}
	}
}

// watch reads server-sent events and hands each to f, until f returns false or an error.
func (c *Client) watch(ctx context.Context, path string, q url.Values, f func(event string, data []byte) (bool, error)) error {
	resp, err := c.send(ctx, "GET", path, q, "text/event-stream", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxLine)
	var event string
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			event = string(value)
		case "data":
			if len(data)+len(value) > maxLine {
				return fmt.Errorf("an event is longer than %d bytes", maxLine)
			}
			data = append(data, value...)
		}
		if len(line) > 0 || event == "" && data == nil {
			continue
		}
		more, err := f(event, data)
		if err != nil || !more {
			return err
		}
		event, data = "", nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := lines.Err(); err != nil {
		return c.broken("GET", "the stream from "+c.where+" broke off", err)
	}
	return c.broken("GET", "the stream from "+c.where+" ended", io.EOF)
}

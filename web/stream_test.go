package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/web"
	"dts/web/api"
	"dts/web/client"
)

func (s *server) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Server: "http://" + s.Addr(), Token: "right", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// attempt puts an attempt and its output into the store.
func (s *server) attempt(id string, n int, state dts.AttemptState, out *dts.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[id] = append(s.attempts[id], &dts.Attempt{TaskID: id, Number: n, State: state})
	if out != nil {
		s.outputs[key(id, n)] = out
	}
}

func (s *server) setStatus(id string, status dts.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.ID == id {
			t.Status = status
		}
	}
}

func TestOutput(t *testing.T) {
	s := start(t, nil)
	id := s.add(dts.Failed).ID
	path := "/tasks/" + id + "/output"
	if status, _, body := s.call(t, "GET", path, ""); status != 404 || !strings.Contains(body, "the task has not run yet; it is FAILED") {
		t.Errorf("%d %s", status, body)
	}
	s.attempt(id, 1, dts.AttemptFailed, nil)
	s.attempt(id, 2, dts.AttemptSuccess, &dts.Output{Head: []byte("begin"), Tail: []byte("end\xff\n"), Total: 100})
	for _, tt := range []struct{ query, accept, want string }{
		{"", "", "begin\n… 90 bytes dropped …\nend\xff\n"},
		{"?attempt=1", "", ""},
		{"?follow=0", "text/plain, application/json", "begin\n… 90 bytes dropped …\nend\xff\n"},
		{"", "application/json", `{"task_id":"` + id + `","attempt":2,"state":"SUCCESS","total_bytes":100,"dropped_bytes":90,"head":"begin","tail":"end` + "\uFFFD" + `\n"}` + "\n"},
	} {
		status, _, body := s.call(t, "GET", path+tt.query, "", "Accept", tt.accept)
		if status != 200 || body != tt.want {
			t.Errorf("%s %s: %d %q", tt.query, tt.accept, status, body)
		}
	}
	if status, _, body := s.call(t, "GET", path+"?attempt=3", ""); status != 404 || !strings.Contains(body, "there is no attempt 3; the task has had 2") {
		t.Errorf("%d %s", status, body)
	}

	// A running attempt that the store does not know yet.
	tl := newTail()
	tl.write("so far", false)
	s.tails[key(id, 3)] = tl
	if status, _, body := s.call(t, "GET", path, ""); status != 200 || body != "so far" {
		t.Errorf("running: %d %s", status, body)
	}
	tl.from, tl.data = 1000, []byte("late")
	if _, _, body := s.call(t, "GET", path, ""); body != "\n… 1000 bytes dropped …\nlate" {
		t.Errorf("running with a gap: %q", body)
	}
}

// collect reads a whole stream of output.
func collect(t *testing.T, c *client.Client, id string, attempt int) (string, *api.OutputEnd) {
	t.Helper()
	var text strings.Builder
	for chunk, err := range c.FollowOutput(t.Context(), id, attempt) {
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Dropped > 0 {
			fmt.Fprintf(&text, "[%d dropped]", chunk.Dropped)
		}
		text.WriteString(chunk.Text)
		if chunk.End != nil {
			return text.String(), chunk.End
		}
	}
	t.Fatal("the stream ended without an end")
	return "", nil
}

func TestFollowFinished(t *testing.T) {
	s := start(t, nil)
	id := s.add(dts.Failed).ID
	s.attempt(id, 1, dts.AttemptFailed, &dts.Output{Head: []byte("a\xc3"), Tail: []byte("z"), Total: 10})
	text, end := collect(t, s.client(t), id, 0)
	if text != "a\uFFFD[7 dropped]z" || end.State != dts.AttemptFailed || end.Status != dts.Failed || end.Attempt != 1 {
		t.Errorf("%q %+v", text, end)
	}
	never := s.add(dts.Cancelled).ID
	if text, end := collect(t, s.client(t), never, 0); text != "" || end.Status != dts.Cancelled || end.Attempt != 0 {
		t.Errorf("%q %+v", text, end)
	}
	for _, err := range s.client(t).FollowOutput(t.Context(), dts.NewID(now), 0) {
		if dts.CodeOf(err) != dts.ErrNotFound {
			t.Error(err)
		}
	}
}

// TestFollowLive follows a task from before it starts until its result is known, which is after the output
// has ended.
func TestFollowLive(t *testing.T) {
	s := start(t, nil)
	id := s.add(dts.Pending).ID
	type result struct {
		text string
		end  *api.OutputEnd
	}
	done := make(chan result, 1)
	chunks := make(chan string, 100)
	go func() {
		var text strings.Builder
		for chunk, err := range s.client(t).FollowOutput(t.Context(), id, 0) {
			if err != nil {
				t.Error(err)
				break
			}
			text.WriteString(chunk.Text)
			if chunk.End != nil {
				done <- result{text.String(), chunk.End}
				return
			}
			chunks <- chunk.Text
		}
		done <- result{}
	}()
	<-s.subbed
	tl := newTail()
	s.mu.Lock()
	s.tails[key(id, 1)] = tl
	s.mu.Unlock()
	s.setStatus(id, dts.Running)
	s.publish(dts.Event{Type: dts.EventStarted, TaskID: dts.NewID(now)}) // another task's
	s.publish(dts.Event{Type: dts.EventStarted, TaskID: id})
	tl.write("half a \xe2\x82", false)
	if got := <-chunks; got != "half a " {
		t.Errorf("first chunk %q", got)
	}
	tl.write("\xac and more\n", false)
	if got := <-chunks; got != "€ and more\n" {
		t.Errorf("second chunk %q", got)
	}
	tl.write("", true)
	s.mu.Lock()
	delete(s.tails, key(id, 1))
	s.mu.Unlock()
	s.overflow() // the stream must find out all the same
	<-s.subbed
	s.attempt(id, 1, dts.AttemptSuccess, nil)
	s.setStatus(id, dts.Success)
	s.publish(dts.Event{Type: dts.EventFinished, TaskID: id})
	r := <-done
	if r.text != "half a € and more\n" || r.end == nil || r.end.State != dts.AttemptSuccess || r.end.Status != dts.Success {
		t.Errorf("%q %+v", r.text, r.end)
	}
}

func TestEvents(t *testing.T) {
	s := start(t, nil)
	id, rid := dts.NewID(now), dts.NewID(now)
	got := make(chan string, 10)
	watch := func(name, task, recurring string) {
		go func() {
			for e, err := range s.client(t).Events(t.Context(), task, recurring) {
				if err != nil {
					got <- name + ": " + err.Error()
					return
				}
				got <- name + ": " + string(e.Type) + " " + e.Name
			}
		}()
		<-s.subbed
	}
	watch("task", id, "")
	s.publish(dts.Event{Type: dts.EventStarted, TaskID: dts.NewID(now), Name: "another"})
	s.publish(dts.Event{Type: dts.EventStarted, TaskID: id, Name: "mine"})
	if g := <-got; g != "task: started mine" {
		t.Error(g)
	}
	s.overflow()
	if g := <-got; g != "task: "+client.ErrOverflow.Error() {
		t.Error(g)
	}
	watch("recurring", "", rid)
	s.publish(dts.Event{Type: dts.EventSkipped, RecurringTaskID: rid, Name: "r"})
	if g := <-got; g != "recurring: skipped r" {
		t.Error(g)
	}
}

// TestStreamFormat looks at the bytes, which browsers read too.
func TestStreamFormat(t *testing.T) {
	s := start(t, nil)
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr()+"/v1/events", nil)
	req.Header.Set("Authorization", "Bearer right")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", resp.Header)
	}
	s.publish(dts.Event{Type: dts.EventStarted, At: now, TenantID: "default", Name: "a\nb"})
	lines := bufio.NewScanner(resp.Body)
	var got []string
	for len(got) < 5 && lines.Scan() {
		got = append(got, lines.Text())
	}
	want := []string{": dts", "", "event: started", `data: {"type":"started","at":"2026-03-01T08:00:00Z","tenant_id":"default","name":"a\nb"}`, ""}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q", got)
	}
}

func TestStreamLimit(t *testing.T) {
	s := start(t, func(o *web.Options) { o.API.MaxStreams = 1 })
	got := make(chan dts.Event)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer close(got)
		for e, err := range s.client(t).Events(ctx, "", "") {
			if err == nil {
				got <- e
			}
		}
	}()
	<-s.subbed
	s.publish(dts.Event{Type: dts.EventStarted})
	<-got // now it holds the only place
	status, h, body := s.call(t, "GET", "/events", "")
	if status != 503 || h.Get("Retry-After") == "" || !strings.Contains(body, "all 1 streams are in use") {
		t.Errorf("%d %v %s", status, h, body)
	}
	cancel()
	<-got
}

func TestStopEndsStreams(t *testing.T) {
	s := start(t, nil)
	ended := make(chan error, 2)
	id := s.add(dts.Pending).ID
	go func() {
		for _, err := range s.client(t).Events(t.Context(), "", "") {
			ended <- err
		}
	}()
	go func() {
		for _, err := range s.client(t).FollowOutput(t.Context(), id, 0) {
			ended <- err
		}
	}()
	<-s.subbed
	<-s.subbed
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a stream ended without an error")
		}
	}
	if err := s.Stop(ctx); err != nil {
		t.Error("a second Stop:", err)
	}
	if err := s.client(t).Health(ctx); !errors.Is(err, client.ErrNoServer) {
		t.Error("after Stop:", err)
	}
}

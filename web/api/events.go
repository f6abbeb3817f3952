package api

import (
	"net/http"
	"time"
)

// events streams what happens, until the caller goes, the server stops or the caller is too slow; the last
// event is "overflow" then, and some may have been missed.
func (h *Handler) events(c *call, w http.ResponseWriter) error {
	var f fieldErrors
	task := f.id("task_id", c.query.Get("task_id"))
	recurring := f.id("recurring_task_id", c.query.Get("recurring_task_id"))
	if err := f.err(); err != nil {
		return err
	}
	events, unsubscribe := h.Scheduler.Subscribe(c.p.TenantID)
	defer unsubscribe()
	s, end, err := h.openStream(c, w)
	if err != nil {
		return err
	}
	defer end()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-s.ctx.Done():
			return nil
		case <-beat.C:
			err = s.beat()
		case e, ok := <-events:
			if !ok {
				s.send("overflow", struct{}{})
				return nil
			}
			if task == "" && recurring == "" || task != "" && e.TaskID == task || recurring != "" && e.RecurringTaskID == recurring {
				err = s.send(string(e.Type), e)
			}
		}
		if err != nil {
			return nil // the caller is gone
		}
	}
}

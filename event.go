package dts

import "time"

// EventType says what happened.
type EventType string

const (
	EventCreated   EventType = "created"
	EventChanged   EventType = "changed" // modified, moved, paused, resumed, retried, cancelled while pending
	EventStarted   EventType = "started"
	EventStopped   EventType = "stopped"   // a running command stands, for one of high priority
	EventContinued EventType = "continued" // and goes on
	EventFinished  EventType = "finished"  // an attempt ended; Status says what the task is now
	EventSkipped   EventType = "skipped"
	EventDeleted   EventType = "deleted"
	EventWarning   EventType = "warning" // a run is not as was asked for, and goes on; Warning says what it is
)

// Event tells those who watch that something happened. Events are not stored.
type Event struct {
	Type            EventType `json:"type"`
	At              time.Time `json:"at"`
	TenantID        string    `json:"tenant_id"`
	TaskID          string    `json:"task_id,omitempty"`
	RecurringTaskID string    `json:"recurring_task_id,omitempty"`
	Name            string    `json:"name,omitempty"`
	Status          string    `json:"status,omitempty" doc:"of the task, or of the recurring task where there is no task_id"`
	Attempt         int       `json:"attempt,omitempty"`
	LatenessUS      int64     `json:"lateness_us,omitempty"`
	Warning         Warning   `json:"warning,omitempty" enum:"LATE,LONG,SHORT" doc:"of an event of type warning"`
	Error           string    `json:"error,omitempty"`
}

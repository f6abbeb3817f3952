package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"dts"
	"dts/web/api"
)

// Calendars returns the calendars by name, without the text of their .ics files.
func (c *Client) Calendars(ctx context.Context) ([]*dts.Calendar, error) {
	return items[*dts.Calendar](ctx, c, "/calendars", nil)
}

// Calendar returns a calendar.
func (c *Client) Calendar(ctx context.Context, name string) (*dts.Calendar, error) {
	return get[dts.Calendar](ctx, c, "GET", calendarPath(name, ""), nil, nil)
}

// CreateCalendar creates a calendar; dts.ErrConflict when there is one of that name.
func (c *Client) CreateCalendar(ctx context.Context, q api.CalendarRequest) (*dts.Calendar, error) {
	return get[dts.Calendar](ctx, c, "POST", "/calendars", nil, q)
}

// PutCalendar creates a calendar or replaces it. Existed tells which.
func (c *Client) PutCalendar(ctx context.Context, name string, q api.CalendarRequest) (dts.Created[*dts.Calendar], error) {
	var k dts.Calendar
	status, err := c.do(ctx, "PUT", calendarPath(name, ""), nil, q, &k)
	return dts.Created[*dts.Calendar]{Item: &k, Existed: status == http.StatusOK}, err
}

// DeleteCalendar deletes a calendar that nothing uses, and returns it as it was.
func (c *Client) DeleteCalendar(ctx context.Context, name string) (*dts.Calendar, error) {
	return get[dts.Calendar](ctx, c, "DELETE", calendarPath(name, ""), nil, nil)
}

// CalendarWindows returns what a calendar covers from one time to another, its days read in a zone. Zero times and ""
// are the server's choice.
func (c *Client) CalendarWindows(ctx context.Context, name string, from, to time.Time, zone string) ([]api.CalendarWindow, error) {
	q := url.Values{}
	setTime(q, "from", from)
	setTime(q, "to", to)
	set(q, "time_zone", zone)
	return items[api.CalendarWindow](ctx, c, calendarPath(name, "/windows"), q)
}

func calendarPath(name, rest string) string { return "/calendars/" + url.PathEscape(name) + rest }

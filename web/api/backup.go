package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"dts"
)

// Backups makes copies of the whole database.
type Backups interface {
	// Backup begins a copy of the database as it is now. It returns the copy's bytes as they come, and how many there
	// will be; the error of a read says that there is no whole copy. The caller closes it. dts.ErrConflict: one is being
	// fetched already, or this server has no database of its own; dts.ErrFull: no room for it.
	Backup(ctx context.Context) (r io.ReadCloser, size int64, err error)
}

const (
	backupType  = "application/vnd.sqlite3"
	backupChunk = 256 << 10
	// backupWait is how long a reader may take for one chunk: who is slower is gone.
	backupWait = 30 * time.Second
)

// backup serves GET /backup. It is made at the server's pace and sent at the caller's.
func (h *Handler) backup(c *call, w http.ResponseWriter) error {
	if !c.p.Admin {
		return dts.Errorf(dts.ErrForbidden, "a backup holds everything of everyone; it needs an admin's token")
	}
	if c.r.Method == http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		return WithStatus(http.StatusMethodNotAllowed, dts.Errorf(dts.ErrInvalid, "this path takes GET"))
	}
	if h.Backups == nil {
		return dts.Errorf(dts.ErrConflict, "this server cannot make a backup")
	}
	ctx, cancel := context.WithCancel(c)
	defer cancel()
	rc := http.NewResponseController(w)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-h.Stopping:
			cancel()
			rc.SetWriteDeadline(time.Now()) // a slow reader does not keep the server from stopping
		}
	}()
	defer func() { cancel(); <-stopped }()
	r, size, err := h.Backups.Backup(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	header := w.Header()
	header.Set("Content-Type", backupType)
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	header.Set("Content-Disposition", `attachment; filename="dts-`+h.Now().UTC().Format("20060102T150405Z")+`.db"`)
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	rc.SetReadDeadline(time.Time{}) // the server's limits are for requests that end soon
	buf := make([]byte, backupChunk)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			rc.SetWriteDeadline(time.Now().Add(backupWait))
			if ctx.Err() != nil { // the server stops, or the caller is gone; looked at after the deadline was moved
				panic(http.ErrAbortHandler)
			}
			if _, err := w.Write(buf[:n]); err != nil {
				return nil // the caller is gone
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			if ctx.Err() == nil {
				h.Log.Error("a backup failed", "error", err)
			}
			panic(http.ErrAbortHandler) // a part must not look like a whole
		}
	}
}

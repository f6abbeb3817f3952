package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"dts"
)

// Backup is a copy of the server's database on its way.
type Backup struct {
	Size   int64 // in bytes
	body   io.ReadCloser
	left   int64
	wait   time.Duration // how long nothing may come
	cancel context.CancelFunc
}

// Backup begins a backup. The caller reads it to its end and closes it.
func (c *Client) Backup(ctx context.Context) (*Backup, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.send(ctx, http.MethodGet, "/backup", nil, "application/vnd.sqlite3", nil)
	if err != nil {
		cancel()
		return nil, err
	}
	if resp.ContentLength <= 0 {
		cancel()
		resp.Body.Close()
		return nil, dts.Errorf(dts.ErrUnavailable, "what answers at %s is no dts server, or something between changes its answers", c.where)
	}
	return &Backup{Size: resp.ContentLength, body: resp.Body, left: resp.ContentLength, wait: c.wait, cancel: cancel}, nil
}

// Read implements io.Reader. io.EOF comes after the last byte only.
func (b *Backup) Read(p []byte) (int, error) {
	stalled := time.AfterFunc(b.wait, b.cancel)
	n, err := b.body.Read(p)
	if b.left -= int64(n); !stalled.Stop() && err != nil {
		err = fmt.Errorf("nothing came for %s: the server hangs, or the connection is gone", b.wait)
	}
	switch {
	case errors.Is(err, io.EOF) && b.left == 0:
		return n, io.EOF
	case err != nil:
		return n, fmt.Errorf("the backup broke off after %d of %d bytes, and the server's log may say why: %w", b.Size-b.left, b.Size, err)
	}
	return n, nil
}

// Close ends it.
func (b *Backup) Close() error {
	b.cancel()
	return b.body.Close()
}

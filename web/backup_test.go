package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/web"
	"dts/web/client"
)

// fakeBackups hands out a text as a backup, and then fails if it is to.
type fakeBackups struct {
	text   string
	closed chan struct{} // one for each that was closed

	mu     sync.Mutex
	failed error // of a read
	none   error // at the beginning
}

func (f *fakeBackups) fail(read, none error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed, f.none = read, none
}

func (f *fakeBackups) Backup(context.Context) (io.ReadCloser, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.none != nil {
		return nil, 0, f.none
	}
	var r io.Reader = strings.NewReader(f.text)
	size := int64(len(f.text))
	if f.failed != nil {
		r = io.MultiReader(r, errReader{f.failed})
		size += 1000
	}
	return struct {
		io.Reader
		io.Closer
	}{r, closer(func() { f.closed <- struct{}{} })}, size, nil
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

type closer func()

func (c closer) Close() error { c(); return nil }

// TestBackup: a backup comes whole, or its receiver notices; and only an admin gets one.
func TestBackup(t *testing.T) {
	text := strings.Repeat("some pages ", 100_000)
	f := &fakeBackups{text: text, closed: make(chan struct{}, 10)}
	s := start(t, func(o *web.Options) { o.API.Backups = f })
	status, h, body := s.call(t, "GET", "/backup", "")
	if status != 200 || body != text || h.Get("Content-Type") != "application/vnd.sqlite3" ||
		h.Get("Content-Disposition") != `attachment; filename="dts-20260301T080000Z.db"` || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%d, %d bytes, %v", status, len(body), h)
	}
	<-f.closed
	if status, _, _ := s.call(t, "HEAD", "/backup", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("HEAD: %d", status)
	}
	if status, _, body := s.call(t, "GET", "/backup", "", "Authorization", "Bearer other"); status != http.StatusForbidden || strings.Contains(body, "pages") {
		t.Errorf("one who is no admin: %d %s", status, body)
	}
	c, err := client.New(client.Options{Socket: s.socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, err := c.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(b)
	if err != nil || string(got) != text || b.Size != int64(len(text)) {
		t.Errorf("%d bytes of %d, %v", len(got), b.Size, err)
	}
	b.Close()

	f.fail(errors.New("the disk is gone"), nil)
	if b, err = c.Backup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err = io.ReadAll(b); err == nil || !strings.Contains(err.Error(), "the backup broke off after") {
		t.Errorf("a part was taken for a whole: %v", err)
	}
	b.Close()
	if !strings.Contains(s.logs.String(), "the disk is gone") {
		t.Error("the log does not say why")
	}
	f.fail(nil, dts.Errorf(dts.ErrFull, "there is no room"))
	if _, err := c.Backup(t.Context()); dts.CodeOf(err) != dts.ErrFull {
		t.Errorf("without room: %v", err)
	}

	none := start(t, nil)
	if status, _, body := none.call(t, "GET", "/backup", ""); status != http.StatusConflict {
		t.Errorf("where there can be none: %d %s", status, body)
	}
}

// TestBackupStop: one who fetches a backup and does not read on does not keep the server from stopping.
func TestBackupStop(t *testing.T) {
	f := &fakeBackups{text: strings.Repeat("some pages ", 5_000_000), closed: make(chan struct{}, 1)}
	s := start(t, func(o *web.Options) { o.API.Backups = f })
	c, err := client.New(client.Options{Socket: s.socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, err := c.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
	<-f.closed
	if _, err := io.ReadAll(b); err == nil || !strings.Contains(err.Error(), "the backup broke off after") {
		t.Errorf("a part was taken for a whole: %v", err)
	}
}

// TestBackupStalls: a server that hangs in the middle of a backup does not keep its receiver for ever.
func TestBackupStalls(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "some pages")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	c, err := client.New(client.Options{Server: s.URL, Token: "t", Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, err := c.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, err := io.ReadAll(b); string(got) != "some pages" || err == nil || !strings.Contains(err.Error(), "nothing came for 500ms") {
		t.Errorf("%q, %v", got, err)
	}
}

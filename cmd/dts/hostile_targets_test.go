package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// rawTarget accepts connections, reads the header of a request from each and then does what answer says; when the
// test ends every connection is cut. It returns its address.
func rawTarget(t *testing.T, answer func(c *net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				var seen []byte
				buf := make([]byte, 4096)
				for !bytes.Contains(seen, []byte("\r\n\r\n")) {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					seen = append(seen, buf[:n]...)
				}
				answer(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// say answers with a text and hangs up.
func say(text string) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		io.WriteString(c, text)
		c.CloseWrite()
		io.Copy(io.Discard, c) // until the client goes, so that it meets an end and not a reset
	}
}

// hangs waits until the client goes.
func hangs(c *net.TCPConn) { io.Copy(io.Discard, c) }

// forever writes start, and then more again and again, pausing between, until the client goes.
func forever(start, more string, pause time.Duration) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		_, err := io.WriteString(c, start)
		for err == nil {
			_, err = io.WriteString(c, more)
			time.Sleep(pause)
		}
	}
}

// gzipBomb is size bytes of zeros, compressed in pieces of 64 MiB.
func gzipBomb(size int64) func(*net.TCPConn) {
	const piece = 64 << 20
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range piece >> 20 {
		z.Write(zeros)
	}
	z.Close()
	return func(c *net.TCPConn) {
		n := size / piece
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", n*int64(packed.Len()))
		for ; n > 0 && err == nil; n-- {
			_, err = c.Write(packed.Bytes())
		}
	}
}

// hostileTarget is one target and what must become of a task that calls it. %H in the error is the target's host.
type hostileTarget struct {
	name   string
	answer func(*net.TCPConn)
	state  dts.AttemptState
	err    string
}

func hostileTargets(t *testing.T) []hostileTarget {
	const ok = "HTTP/1.1 200 OK\r\n"
	kib := strings.Repeat("x", 1024)
	circle := ""
	circle = rawTarget(t, func(c *net.TCPConn) {
		say("HTTP/1.1 302 Found\r\nLocation: http://" + circle + "/again\r\nContent-Length: 0\r\n\r\n")(c)
	})
	return []hostileTarget{
		{"hangs", hangs, dts.AttemptTimedOut, "no answer within 2s"},
		{"drips its header", forever("", "H", time.Second), dts.AttemptTimedOut, "no answer within 2s"},
		{"drips its body", forever(ok+"\r\n", ".", time.Second), dts.AttemptTimedOut, "the answer did not end within 2s"},
		{"hangs up", func(*net.TCPConn) {}, dts.AttemptFailed, "connection closed by %H"},
		{"resets", func(c *net.TCPConn) { c.SetLinger(0) }, dts.AttemptFailed, "connection reset by %H"},
		{"resets in the middle", func(c *net.TCPConn) {
			io.WriteString(c, ok+"Content-Length: 1000\r\n\r\nhalf")
			time.Sleep(100 * time.Millisecond)
			c.SetLinger(0)
		}, dts.AttemptFailed, "answered 200 OK, but the answer broke off: connection reset by %H"},
		{"redirects in circles", say("HTTP/1.1 302 Found\r\nLocation: http://" + circle + "/\r\nContent-Length: 0\r\n\r\n"), dts.AttemptFailed, "more than 5 redirects"},
		{"redirects to a file", say("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"), dts.AttemptFailed, "redirected to a URL that is neither http nor https"},
		{"redirects to no URL", say("HTTP/1.1 302 Found\r\nLocation: http://[::1/\r\nContent-Length: 0\r\n\r\n"), dts.AttemptFailed, "redirected to something that is not a URL"},
		{"answers 10 GB of gzip", gzipBomb(10 << 30), dts.AttemptSuccess, ""},
		{"says gzip and sends something else", say(ok + "Content-Encoding: gzip\r\n\r\nplain text, long enough for a header"), dts.AttemptFailed, "answered 200 OK, but the answer broke off: %H says that its answer is gzip, and it is not"},
		{"answers without end", forever(ok+"\r\n", kib, 0), dts.AttemptSuccess, ""},
		{"sends headers without end", forever(ok, "X-More: "+kib+"\r\n", 0), dts.AttemptFailed, "%H sends a header of more than 256 KiB"},
		{"sends one header without end", forever(ok+"X-More: ", kib, 0), dts.AttemptFailed, "%H sends a header of more than 256 KiB"},
		{"sends a status line without end", forever("HTTP/1.1 200 ", kib, 0), dts.AttemptFailed, "%H sends a header of more than 256 KiB"},
		{"does not speak HTTP", say("SSH-2.0-OpenSSH_9.2\r\n\r\n"), dts.AttemptFailed, "%H does not answer in HTTP"},
		{"has an invalid status", say("HTTP/1.1 twohundred OK\r\n\r\n"), dts.AttemptFailed, "%H does not answer in HTTP"},
		{"has an invalid header", say(ok + "no colon\r\n\r\n"), dts.AttemptFailed, "%H breaks the rules of HTTP: malformed MIME header: missing colon: …"},
		{"promises much and closes", say(ok + "Content-Length: 9223372036854775807\r\n\r\nlittle"), dts.AttemptFailed, "answered 200 OK, but the answer broke off: connection closed by %H"},
		{"promises what is no number", say(ok + "Content-Length: -5\r\n\r\nlittle"), dts.AttemptFailed, "%H breaks the rules of HTTP: bad Content-Length …"},
		{"says 1xx without end", forever("", "HTTP/1.1 103 Early Hints\r\n\r\n", 0), dts.AttemptFailed, "%H sends a header of more than 256 KiB"},
		{"says 1xx slowly", forever("", "HTTP/1.1 103 Early Hints\r\n\r\n", 900*time.Millisecond), dts.AttemptTimedOut, "no answer within 2s"},
		{"switches protocols", say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\nhello"), dts.AttemptFailed, "answered 101 Switching Protocols"},
		{"sends garbage for chunks", say(ok + "Transfer-Encoding: chunked\r\n\r\nzz garbage\r\n"), dts.AttemptFailed, "answered 200 OK, but the answer broke off: %H breaks the rules of HTTP: invalid byte in chunk length"},
		{"sends a chunk of a size beyond numbers", say(ok + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffffffff\r\n"), dts.AttemptFailed, "answered 200 OK, but the answer broke off: %H breaks the rules of HTTP: chunk length too large"},
		{"extends a chunk without end", forever(ok+"Transfer-Encoding: chunked\r\n\r\n5;", kib, 0), dts.AttemptFailed, "answered 200 OK, but the answer broke off: %H breaks the rules of HTTP: header line too long"},
		{"sends trailers without end", forever(ok+"Transfer-Encoding: chunked\r\nTrailer: X-More\r\n\r\n0\r\n", "X-More: "+kib+"\r\n", 0), dts.AttemptFailed, "answered 200 OK, but the answer broke off: %H breaks the rules of HTTP: suspiciously long trailer after chunked body"},
		{"uses an unknown transfer encoding", say(ok + "Transfer-Encoding: rot13\r\n\r\nuryyb"), dts.AttemptFailed, "%H breaks the rules of HTTP: unsupported transfer encoding: …"},
	}
}

// targets calls every hostile target many times at once. Each call ends in time as it should, the server's memory
// stays bounded, and tasks that call a good target are on time meanwhile.
func (h *hostile) targets(t *testing.T) {
	s := newServer(t, h.bin, filepath.Join(t.TempDir(), "data"))
	good := newTarget(t, h.seed)
	s.start()
	const times = 4
	list := hostileTargets(t)
	hosts := make([]string, len(list))
	created := map[string]int{} // by task id: index into list
	var requests []api.TaskRequest
	for i, target := range list {
		hosts[i] = rawTarget(t, target.answer)
		for n := range times {
			q := api.TaskRequest{Spec: httpSpec("http://" + hosts[i] + "/?token=secret"), Delay: api.Delay(fmt.Sprintf("%dms", 500+n*200))}
			q.Name, q.TimeoutSeconds, q.Retry = target.name, 2, dts.Retry{MaxAttempts: 1}
			requests = append(requests, q)
		}
	}
	answer, err := s.api.CreateTasks(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for n, item := range answer.Items {
		created[item.TaskID] = n / times
	}
	var punctual []api.TaskRequest
	for n := range 200 {
		punctual = append(punctual, api.TaskRequest{Spec: httpSpec(good.URL + "/"), Delay: api.Delay(fmt.Sprintf("%dms", 500+n*20))})
	}
	if answer, err = s.api.CreateTasks(t.Context(), punctual); err != nil {
		t.Fatal(err)
	}
	s.eventually(15*time.Second, "every call to end", func() bool {
		n, err := s.api.Counts(t.Context())
		return err == nil && n.Pending+n.Running == 0
	})
	for id, i := range created {
		target := list[i]
		want := strings.ReplaceAll(target.err, "%H", hosts[i])
		attempts, err := s.api.Attempts(t.Context(), id)
		if err != nil || len(attempts) != 1 {
			t.Errorf("a target that %s: %d attempts, %v", target.name, len(attempts), err)
			continue
		}
		a := attempts[0]
		if a.State != target.state || a.Error != want {
			t.Errorf("a target that %s: %s %q; want %s %q", target.name, a.State, a.Error, target.state, want)
		}
		if took := time.Duration(a.DurationUS) * time.Microsecond; took > 2500*time.Millisecond {
			t.Errorf("a target that %s: the attempt with a limit of 2s took %s", target.name, took)
		}
		if strings.Contains(a.Error, "secret") {
			t.Errorf("a target that %s: the error %q shows a secret", target.name, a.Error)
		}
	}
	if strings.Contains(s.log(), "secret") || strings.Contains(s.log(), "panic") {
		t.Errorf("the log shows a secret or a panic:\n%s", s.log())
	}
	worst := int64(0)
	for _, item := range answer.Items {
		task, err := s.api.Task(t.Context(), item.TaskID)
		if err != nil || task.Status != dts.Success || task.LatenessUS == nil {
			t.Fatalf("a punctual task: %+v, %v", task, err)
		}
		worst = max(worst, *task.LatenessUS)
	}
	peak := s.residentBytes("VmHWM")
	t.Logf("%d calls of %d hostile targets: the latest other task was %d ms late, peak memory %d MiB", len(created), len(list), worst/1000, peak>>20)
	if worst > 500_000 {
		t.Errorf("a task was %d ms late beside hostile targets", worst/1000)
	}
	if peak > 160<<20 {
		t.Errorf("the server took %d MiB", peak>>20)
	}
	if code := s.stop(5 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// redirectElsewhere follows a redirect to another host: what the task sends to the first is not for the second.
func (h *hostile) redirectElsewhere(t *testing.T) {
	s := newServer(t, h.bin, filepath.Join(t.TempDir(), "data"))
	s.start()
	got := make(chan http.Header, 1)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got <- r.Header }))
	t.Cleanup(elsewhere.Close)
	first := rawTarget(t, say("HTTP/1.1 307 Temporary Redirect\r\nLocation: "+elsewhere.URL+"/\r\nContent-Length: 0\r\n\r\n"))
	b, err := json.Marshal(dts.HTTPTarget{URL: "http://" + first, Headers: map[string]string{"X-Api-Key": "secret", "Authorization": "secret"}, Body: "{}"})
	if err != nil {
		t.Fatal(err)
	}
	task := s.create(api.TaskRequest{Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: b}})
	select {
	case header := <-got:
		if header.Get("X-Api-Key") != "" || header.Get("Authorization") != "" || header.Get("Idempotency-Key") != task.ID {
			t.Errorf("the other host got %v", header)
		}
	case <-time.After(10 * time.Second):
		t.Error("the redirect was not followed")
	}
}

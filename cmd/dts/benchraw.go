package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dts"
	"dts/web"
)

// rawConn is one connection that posts prepared bodies. It costs the machine as little as a client can: a
// benchmark of a server would otherwise measure the HTTP client beside it, on the same cores.
type rawConn struct {
	conn net.Conn
	r    *bufio.Reader
	head string // the request's header after its first line, up to the body's length
	out  []byte
}

// rawTimeout is how long one request may take.
const rawTimeout = time.Minute

func dialRaw(ctx context.Context, network, address, host, token string) (*rawConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	head := " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: dts/bench\r\nContent-Type: application/json\r\n"
	if token != "" {
		head += "Authorization: Bearer " + token + "\r\n"
	}
	return &rawConn{conn: conn, r: bufio.NewReaderSize(conn, 16<<10), head: head + "Content-Length: "}, nil
}

func (c *rawConn) close() { c.conn.Close() }

// post sends one request and reads the answer to its end; n is how long its body was.
func (c *rawConn) post(path string, body []byte, want int) (n int64, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(rawTimeout)); err != nil {
		return 0, err
	}
	c.out = append(append(append(c.out[:0], "POST "...), path...), c.head...)
	c.out = append(strconv.AppendInt(c.out, int64(len(body)), 10), "\r\n\r\n"...)
	c.out = append(c.out, body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return 0, fmt.Errorf("POST %s: %s: %s", path, resp.Status, text)
	}
	return io.Copy(io.Discard, resp.Body)
}

// raw connects to the server: by TCP where it listens there, else by its socket.
func (s *benchServer) raw(ctx context.Context) (*rawConn, error) {
	data := filepath.Join(s.options.Dir, "data")
	if s.options.Listen == web.NoListen {
		return dialRaw(ctx, "unix", socketPath(data), "dts", "")
	}
	token, err := os.ReadFile(filepath.Join(data, adminTokenFile))
	if err != nil {
		return nil, fmt.Errorf("read the server's token: %w", err)
	}
	return dialRaw(ctx, "tcp", s.options.Listen, s.options.Listen, strings.TrimSpace(string(token)))
}

// raw connects to the sink.
func (s *benchSink) raw(ctx context.Context) (*rawConn, error) {
	address := strings.TrimPrefix(s.url, "http://")
	return dialRaw(ctx, "tcp", address, address, "")
}

// rawFlood posts n bodies over so many connections, each as soon as the one before it was answered with want,
// and returns how long that took. Body is called for i from 0 to n-1, from several goroutines.
func rawFlood(ctx context.Context, dial func(context.Context) (*rawConn, error), conns, n int, path string, want int, body func(i int) []byte) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	list := make([]*rawConn, min(conns, n))
	for i := range list {
		var err error
		if list[i], err = dial(ctx); err != nil {
			return 0, err
		}
		defer list[i].close()
		defer context.AfterFunc(ctx, list[i].close)()
	}
	start := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, c := range list {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if _, err := c.post(path, body(int(i)), want); err != nil {
					cancel(fmt.Errorf("request %d of %d: %w", i+1, n, err))
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start), context.Cause(ctx)
}

// taskBody is the body of POST /tasks: task i posts to url at the given time. It is what json.Marshal would make of
// the request, faster.
func taskBody(b []byte, i int, url string, at time.Time) []byte {
	b = append(b, `{"target_type":"HTTP_CALLBACK","target_config":{"url":`...)
	b = strconv.AppendQuote(b, url)
	b = append(b, `,"body":`...)
	b = strconv.AppendQuote(b, benchBody(i))
	b = append(b, `},"run_at":"`...)
	b = at.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, `"}`...)
}

// bulkBody is the body of POST /tasks/bulk: the tasks from first to before end.
func bulkBody(first, end int, url string, at func(i int) time.Time) []byte {
	b := []byte(`{"tasks":[`)
	for i := first; i < end; i++ {
		if i > first {
			b = append(b, ',')
		}
		b = taskBody(b, i, url, at(i))
	}
	return append(b, `]}`...)
}

// bulkConns is over how many connections tasks are created in bulk: while one request's tasks are written, the
// next one's are read.
const bulkConns = 2

// fill creates n tasks in bulk that are not to run while the benchmark does, due at the instants that at
// returns. At is called from several goroutines.
func (b *bench) fill(ctx context.Context, n int, at func(i int) time.Time) error {
	bulks := (n + dts.MaxBulk - 1) / dts.MaxBulk
	_, err := rawFlood(ctx, b.server.raw, bulkConns, bulks, "/tasks/bulk", http.StatusCreated, func(i int) []byte {
		return bulkBody(i*dts.MaxBulk, min((i+1)*dts.MaxBulk, n), b.sink.url, at)
	})
	if err != nil {
		return fmt.Errorf("create pending tasks: %w", err)
	}
	b.server.filled = true
	return nil
}

// laterBy returns an instant for task i: at random within 30 days, an hour from now at the earliest, the same
// distance each time.
func laterBy(now time.Time) func(i int) time.Time {
	const hour, days = time.Hour, 30 * 24 * time.Hour
	return func(i int) time.Time {
		x := uint64(i+1) * 0x9e3779b97f4a7c15 // splitmix64: Steele, Lea, Flood 2014
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return dts.Micros(now.Add(hour + time.Duration((x^x>>31)%uint64(days-hour))))
	}
}

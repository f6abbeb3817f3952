package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
)

// arrival is one request that came to a sink.
type arrival struct {
	Key string `json:"key"`   // its Idempotency-Key: for dts the task's id
	At  int64  `json:"at_ns"` // when it came, Unix nanoseconds
}

// tally is a summary of the requests since the last reset.
type tally struct {
	Requests int   `json:"requests"`
	Keys     int   `json:"keys"`    // different ones; fewer than requests when some came again
	LastNS   int64 `json:"last_ns"` // when the last one came, Unix nanoseconds; 0: none did
}

// Limits of what a sink keeps.
const (
	maxArrivals = 10_000_000
	maxSinkKey  = 256
)

// sinkHandler answers every request with 200 and nothing, and remembers when it came. Below /control/ it
// tells: GET /control/tally, GET /control/arrivals, POST /control/reset.
type sinkHandler struct {
	mu   sync.Mutex
	list []arrival
}

func (s *sinkHandler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /control/tally", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		list := s.list
		s.mu.Unlock()
		t := tally{Requests: len(list)}
		if len(list) > 0 {
			t.LastNS = list[len(list)-1].At
		}
		if r.URL.Query().Has("keys") { // costs time: not while requests come
			keys := make(map[string]struct{}, len(list))
			for _, a := range list {
				keys[a.Key] = struct{}{}
			}
			t.Keys = len(keys)
		}
		json.NewEncoder(w).Encode(t)
	})
	mux.HandleFunc("GET /control/arrivals", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		list := s.list
		s.mu.Unlock()
		json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("POST /control/reset", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.list = make([]arrival, 0, 1<<16)
		s.mu.Unlock()
	})
	mux.HandleFunc("POST /created/{bytes}", created())
	mux.HandleFunc("POST /slow/{ms}", s.takeSlowly)
	(&pacedHandler{}).routes(mux)
	mux.HandleFunc("/", s.take)
	return mux
}

// take is the target. It stays as small as a target can be: what it costs is taken from dts and from its
// ceiling alike.
func (s *sinkHandler) take(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxSinkKey {
		http.Error(w, "the key is too long", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	if len(s.list) < maxArrivals {
		s.list = append(s.list, arrival{key, time.Now().UnixNano()})
	}
	s.mu.Unlock()
	// An empty answer with the status 200 is what net/http sends now.
}

// maxSlow is the longest time after which the sink answers.
const maxSlow = 10 * time.Minute

// takeSlowly is take for a target that takes so many milliseconds, or until nobody waits for its answer any more.
func (s *sinkHandler) takeSlowly(w http.ResponseWriter, r *http.Request) {
	ms, err := strconv.ParseInt(r.PathValue("ms"), 10, 64)
	if err != nil || ms < 0 || ms > maxSlow.Milliseconds() {
		http.Error(w, "the time is not one in milliseconds, of ten minutes at most", http.StatusBadRequest)
		return
	}
	s.take(w, r)
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 1<<20)) // so that the end of the connection is noticed
	select {
	case <-r.Context().Done():
	case <-time.After(time.Duration(ms) * time.Millisecond):
	}
}

// maxCreated is how long an answer of created may be.
const maxCreated = 64 << 10

// created reads a request to its end and answers 201 with so many bytes: what a server does that creates
// nothing.
func created() http.HandlerFunc {
	text := bytes.Repeat([]byte("."), maxCreated)
	return func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("bytes"))
		if err != nil || n < 0 || n > maxCreated {
			http.Error(w, "the length of the answer is wrong", http.StatusBadRequest)
			return
		}
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 1<<20)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(n)}
		w.WriteHeader(http.StatusCreated)
		w.Write(text[:n])
	}
}

func (a *app) benchSinkCommand() *cli.Command {
	return &cli.Command{
		Name: "sink", Usage: "run only the sink: answer every request, and count",
		Description: `Prints its address and answers every HTTP request with 200 and an empty body. It remembers when which
Idempotency-Key came: GET /control/tally tells how many, GET /control/arrivals each one, and
POST /control/reset forgets them.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:0", Usage: "TCP `ADDRESS`; port 0: any that is free"},
			&cli.BoolFlag{Name: "until-eof", Usage: "end when standard input does"},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			ctx, stop := context.WithCancel(c.Context)
			defer stop()
			if c.Bool("until-eof") {
				go func() { // ends with the process
					io.Copy(io.Discard, a.in)
					stop()
				}()
			}
			return a.runSink(ctx, c.String("listen"))
		},
	}
}

// runSink serves until ctx is done.
func (a *app) runSink(ctx context.Context, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	a.printf("http://%s\n", l.Addr())
	server := &http.Server{Handler: (&sinkHandler{}).routes(), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// benchSink is a sink process, and the way to talk to it.
type benchSink struct {
	url  string
	cmd  *exec.Cmd
	pipe io.Closer // its standard input: it ends when this does, also when this process is killed
	http *http.Client
}

func startSink(ctx context.Context) (*benchSink, error) {
	cmd, err := self("bench", "sink", "--until-eof")
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the sink: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the sink: %w", err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the sink: %w", err)
	}
	s := &benchSink{cmd: cmd, pipe: in, http: &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("start the sink: it did not say where it is: %w", err)
	}
	s.url = line[:len(line)-1]
	return s, s.reset(ctx)
}

// stop ends the process and waits for that.
func (s *benchSink) stop() {
	s.http.CloseIdleConnections()
	s.pipe.Close()
	s.cmd.Wait()
}

func (s *benchSink) reset(ctx context.Context) error {
	return s.control(ctx, http.MethodPost, "/control/reset", nil)
}

// tally counts; keys tells whether different keys are counted too, which takes the sink's time.
func (s *benchSink) tally(ctx context.Context, keys bool) (t tally, err error) {
	path := "/control/tally"
	if keys {
		path += "?keys"
	}
	return t, s.control(ctx, http.MethodGet, path, &t)
}

// arrivals returns when each key came first.
func (s *benchSink) arrivals(ctx context.Context) (map[string]time.Time, error) {
	var list []arrival
	if err := s.control(ctx, http.MethodGet, "/control/arrivals", &list); err != nil {
		return nil, err
	}
	first := make(map[string]time.Time, len(list))
	for _, a := range list {
		if _, again := first[a.Key]; !again {
			first[a.Key] = time.Unix(0, a.At)
		}
	}
	return first, nil
}

func (s *benchSink) control(ctx context.Context, method, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, nil)
	if err != nil {
		return err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the sink: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the sink: %s %s: %s", method, path, resp.Status)
	}
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// wait waits until n requests have come.
func (s *benchSink) wait(ctx context.Context, n int, limit time.Duration) error {
	return poll(ctx, limit, func() (bool, string, error) {
		t, err := s.tally(ctx, false)
		return t.Requests >= n, fmt.Sprintf("%d of %d requests came", t.Requests, n), err
	})
}

// pollEvery is how often the state of a run is looked at: rarely enough to cost next to nothing.
const pollEvery = 20 * time.Millisecond

// poll calls done until it returns true or an error, or the limit has passed; what says how far it is.
func poll(ctx context.Context, limit time.Duration, done func() (ok bool, what string, err error)) error {
	return pollEach(ctx, pollEvery, limit, done)
}

// pollEach is poll for what costs more to look at.
func pollEach(ctx context.Context, every, limit time.Duration, done func() (ok bool, what string, err error)) error {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, what, err := done()
		if err != nil || ok {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s within %s", what, limit.Round(time.Second))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// sleepUntil waits for an instant.
func sleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Until(at)):
		return nil
	}
}

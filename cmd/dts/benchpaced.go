package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// pacedPlan is a pattern of instants that requests are expected for: Tasks recurring tasks, each once a second,
// Rounds times, their first instants spread evenly over the second that begins at StartUS.
type pacedPlan struct {
	Tasks, Rounds int
	StartUS       int64 // Unix microseconds
}

// maxPaced is how many instants a plan may have: the sink needs a bit for each.
const maxPaced = 1 << 28

// first returns task i's first instant.
func (p *pacedPlan) first(i int) time.Time {
	return time.UnixMicro(p.StartUS + int64(i)*1_000_000/int64(p.Tasks)).UTC()
}

// instants is how many there are.
func (p *pacedPlan) instants() int { return p.Tasks * p.Rounds }

func (p *pacedPlan) query() string {
	q := url.Values{}
	q.Set("tasks", strconv.Itoa(p.Tasks))
	q.Set("rounds", strconv.Itoa(p.Rounds))
	q.Set("start_us", strconv.FormatInt(p.StartUS, 10))
	return q.Encode()
}

// pacedTally is what came of a plan. Lateness is when a request came minus the instant that it was for.
type pacedTally struct {
	Requests int   `json:"requests"`
	Distinct int   `json:"distinct"` // instants for which at least one request came
	Strays   int   `json:"strays"`   // requests for an instant that is not in the plan
	LastNS   int64 `json:"last_ns"`  // when the last one came, Unix nanoseconds
	P50US    int64 `json:"p50_us"`   // lateness of all requests, in microseconds
	P90US    int64 `json:"p90_us"`
	P99US    int64 `json:"p99_us"`
	P999US   int64 `json:"p999_us"`
	MaxUS    int64 `json:"max_us"`
}

// pacedHandler takes the requests of a plan. It keeps a bit for each instant and a histogram: what it needs does
// not grow with what comes.
type pacedHandler struct {
	mu    sync.Mutex
	plan  pacedPlan
	seen  []uint64
	late  histogram
	tally pacedTally
}

func (s *pacedHandler) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /control/paced", s.begin)
	mux.HandleFunc("GET /control/paced", s.tell)
	mux.HandleFunc("POST /paced/{task}", s.take)
}

func (s *pacedHandler) begin(w http.ResponseWriter, r *http.Request) {
	var p pacedPlan
	var errs [3]error
	p.Tasks, errs[0] = strconv.Atoi(r.URL.Query().Get("tasks"))
	p.Rounds, errs[1] = strconv.Atoi(r.URL.Query().Get("rounds"))
	p.StartUS, errs[2] = strconv.ParseInt(r.URL.Query().Get("start_us"), 10, 64)
	if err := errors.Join(errs[:]...); err != nil || p.Tasks < 1 || p.Rounds < 1 || p.Tasks > maxPaced/p.Rounds {
		http.Error(w, "tasks, rounds and start_us are not a plan", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan, s.seen, s.tally = p, make([]uint64, (p.instants()+63)/64), pacedTally{}
	s.late = histogram{}
}

func (s *pacedHandler) tell(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	t := s.tally
	t.P50US, t.P90US, t.P99US, t.P999US = s.late.percentile(0.5), s.late.percentile(0.9), s.late.percentile(0.99), s.late.percentile(0.999)
	t.MaxUS = s.late.max
	s.mu.Unlock()
	json.NewEncoder(w).Encode(t)
}

// take notes which instant of which task a request is for.
func (s *pacedHandler) take(w http.ResponseWriter, r *http.Request) {
	came := time.Now()
	at, err := time.Parse(time.RFC3339Nano, r.Header.Get("X-Dts-Scheduled-At"))
	if err != nil {
		http.Error(w, "X-Dts-Scheduled-At is not a time", http.StatusBadRequest)
		return
	}
	i, err := strconv.Atoi(r.PathValue("task"))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.Requests++
	s.tally.LastNS = came.UnixNano()
	if err != nil || i < 0 || i >= s.plan.Tasks {
		s.tally.Strays++
		return
	}
	since := at.Sub(s.plan.first(i))
	round := int(since / time.Second)
	if since < 0 || since%time.Second != 0 || round >= s.plan.Rounds {
		s.tally.Strays++
		return
	}
	s.late.add(came.Sub(at).Microseconds())
	bit := i*s.plan.Rounds + round
	if s.seen[bit/64]&(1<<(bit%64)) == 0 {
		s.seen[bit/64] |= 1 << (bit % 64)
		s.tally.Distinct++
	}
}

// histogram counts values in buckets that are at most 1/128 of their value wide. Below 0 counts as 0.
type histogram struct {
	counts [58 * 128]uint64
	n      uint64
	max    int64
}

// bucket returns where v is counted: exactly below 256, then by its eight highest bits.
func (histogram) bucket(v int64) int {
	shift := max(bits.Len64(uint64(v))-8, 0)
	return shift*128 + int(v>>shift)
}

// lowest returns the smallest value of a bucket.
func (histogram) lowest(bucket int) int64 {
	shift := max(bucket/128-1, 0)
	return int64(bucket-shift*128) << shift
}

func (h *histogram) add(v int64) {
	v = max(v, 0)
	h.counts[h.bucket(v)]++
	h.n++
	h.max = max(h.max, v)
}

// percentile returns the smallest value of the bucket that holds the value that is not less than p of all
// values; 0 of none.
func (h *histogram) percentile(p float64) int64 {
	left := uint64(float64(h.n)*p + 0.999999)
	for i, n := range h.counts {
		if n > 0 && n >= left {
			return h.lowest(i)
		}
		left -= n
	}
	return h.max
}

// expect tells the sink what will come, and forgets what came.
func (s *benchSink) expect(ctx context.Context, p pacedPlan) error {
	return s.control(ctx, http.MethodPost, "/control/paced?"+p.query(), nil)
}

// paced says what came of the plan.
func (s *benchSink) paced(ctx context.Context) (t pacedTally, err error) {
	return t, s.control(ctx, http.MethodGet, "/control/paced", &t)
}

// pacedURL is where task i posts to.
func (s *benchSink) pacedURL(i int) string { return fmt.Sprintf("%s/paced/%d", s.url, i) }

package exec

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dts"
)

// httpTarget is a target_config made ready to send. It is shared by runs and never changed.
type httpTarget struct {
	method       string
	url          *url.URL // without user and password: those are in the header
	host         string   // "" unless the task sets a Host header
	header       http.Header
	body         string
	expectStatus []int
	expectBody   []byte
}

// expected reports whether the task names this status as a success.
func (t *httpTarget) expected(status int) bool { return slices.Contains(t.expectStatus, status) }

// succeeds reports whether this status is a success.
func (t *httpTarget) succeeds(status int) bool {
	if len(t.expectStatus) > 0 {
		return t.expected(status)
	}
	return status >= 200 && status <= 299
}

// keptAcrossHosts are the task's own headers that a redirect to another scheme, host or port still carries.
// All others may be credentials: not only Authorization and Cookie, but X-Api-Key and its like.
var keptAcrossHosts = []string{"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Content-Encoding", "Content-Language", "Content-Type", "User-Agent"}

func (t *httpTarget) dropOwnHeaders(h http.Header) {
	for name := range t.header {
		if !slices.Contains(keptAcrossHosts, name) {
			delete(h, name)
		}
	}
}

// newHTTPTarget checks what the transport would refuse with an error that quotes the value.
func newHTTPTarget(spec *dts.Spec, userAgent string) (*httpTarget, error) {
	c, err := spec.HTTP()
	if err != nil {
		return nil, fmt.Errorf("the target_config is not valid: %w", err)
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("the URL is not valid; it should look like https://host/path")
	}
	t := &httpTarget{
		method:       c.Method,
		url:          u,
		header:       make(http.Header, len(c.Headers)+3),
		body:         c.Body,
		expectStatus: c.ExpectStatus,
		expectBody:   []byte(c.ExpectBody),
	}
	if t.method == "" {
		t.method = http.MethodPost
	}
	names := make([]string, 0, len(c.Headers))
	for name, value := range c.Headers {
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("the value of header %s holds a control character", clip(name))
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch key := http.CanonicalHeaderKey(name); key {
		case "Host":
			t.host = c.Headers[name]
		case "X-Idempotency-Key": // see setHeaders
			t.header["x-idempotency-key"] = append(t.header["x-idempotency-key"], c.Headers[name])
		default:
			t.header.Add(key, c.Headers[name])
		}
	}
	if u.User != nil {
		if t.header["Authorization"] == nil {
			password, _ := u.User.Password()
			t.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		}
		u.User = nil
	}
	if t.header["User-Agent"] == nil {
		t.header.Set("User-Agent", userAgent)
	}
	if t.body != "" && t.header["Content-Type"] == nil {
		kind := "text/plain; charset=utf-8"
		if json.Valid([]byte(t.body)) {
			kind = "application/json"
		}
		t.header.Set("Content-Type", kind)
	}
	return t, nil
}

// setHeaders returns the header of one attempt.
//
// The key's name is written in lower case on purpose. Names are case-insensitive (RFC 9110, section 5.1) and
// in HTTP/2 always so, but net/http looks for the spelling Idempotency-Key and, where it finds it, takes a
// POST as safe to send again on its own. A second send must be a second attempt, which the user can see.
func (t *httpTarget) setHeaders(job *dts.Job) http.Header {
	h := make(http.Header, len(t.header)+4)
	for name, values := range t.header {
		h[name] = values
	}
	values := [...]string{job.Task.ID, strconv.Itoa(job.Number), job.Task.ScheduledAt.UTC().Format(microTime), traceparent(job.Task)}
	h["idempotency-key"] = values[0:1:1]
	h["X-Dts-Attempt"] = values[1:2:2]
	h["X-Dts-Scheduled-At"] = values[2:3:3]
	h["Traceparent"] = values[3:4:4]
	return h
}

// microTime is RFC 3339 with microseconds, the resolution at which times are kept.
const microTime = "2006-01-02T15:04:05.000000Z07:00"

// traceparent returns the W3C Trace Context header: one trace per task, one span per attempt, sampled.
func traceparent(t *dts.Task) string {
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	switch {
	case t.TracingID != "":
		b = append(b, t.TracingID...)
	case dts.IsID(t.ID):
		b = append(b, t.ID[:8]...)
		b = append(b, t.ID[9:13]...)
		b = append(b, t.ID[14:18]...)
		b = append(b, t.ID[19:23]...)
		b = append(b, t.ID[24:]...)
	default:
		sum := sha256.Sum256([]byte(t.ID))
		b = hex.AppendEncode(b, sum[:16])
	}
	var span [8]byte
	for n := rand.Uint64() | 1; n != 0; n >>= 8 { // never all zero, which would be invalid
		copy(span[1:], span[:7])
		span[0] = byte(n)
	}
	b = append(b, '-')
	b = hex.AppendEncode(b, span[:])
	return string(append(b, "-01"...))
}

// targetCache keeps the targets of recent configs, so that the runs of a recurring task, or of thousands of
// tasks made alike, parse theirs once.
type targetCache struct {
	mu sync.RWMutex
	m  map[string]*httpTarget
}

const (
	cachedTargets = 512
	cachedConfig  = 8 << 10 // larger ones are parsed each time
)

func (c *targetCache) get(spec *dts.Spec, userAgent string) (*httpTarget, error) {
	c.mu.RLock()
	t := c.m[string(spec.TargetConfig)]
	c.mu.RUnlock()
	if t != nil {
		return t, nil
	}
	t, err := newHTTPTarget(spec, userAgent)
	if err != nil || len(spec.TargetConfig) > cachedConfig {
		return t, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= cachedTargets {
		c.m = make(map[string]*httpTarget)
	}
	c.m[string(spec.TargetConfig)] = t
	return t, nil
}

package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dts"
)

// runHTTP sends the task's request and reads the answer into c.
func (r *Runner) runHTTP(ctx context.Context, job *dts.Job, c *capture) dts.Outcome {
	on := job.Task.Retry.On
	t, err := r.httpTarget(job)
	if err != nil {
		return failed(false, "%s", err)
	}
	transport, follow := r.pooled, true
	if job.Task.Delivery == dts.AtMostOnce {
		transport, follow = r.once, false
	}
	client := http.Client{Transport: transport, CheckRedirect: redirectPolicy(t, follow)}
	resp, err := client.Do(t.request(ctx, job, follow))
	if err != nil {
		if resp != nil { // the redirect that was not followed
			out := failed(on.Status(resp.StatusCode, false), "more than %d redirects", maxRedirects)
			out.HTTPStatus = resp.StatusCode
			return out
		}
		if ctx.Err() != nil {
			return stopped(ctx, job, "no answer within %s")
		}
		if !retryableError(err) {
			return failed(false, "%s", r.explain(err, t.url))
		}
		return failed(on.Failure(dts.FailureConnection, true), "%s", r.explain(err, t.url))
	}
	defer resp.Body.Close()
	found, err := r.readBody(resp.Body, c, t.expectBody)
	out := t.judge(resp, found, on)
	switch {
	case err == nil:
	case errors.Is(err, errBodyLimit):
		fmt.Fprintf(c, "\n[dts: stopped reading the answer after %d MiB]\n", maxBody>>20)
	case ctx.Err() != nil:
		out = stopped(ctx, job, "the answer did not end within %s")
	case out.State == dts.AttemptSuccess:
		out = failed(on.Failure(dts.FailureConnection, true), "answered %s, but the answer broke off: %s", status(resp), r.explain(err, t.url))
	}
	out.HTTPStatus = resp.StatusCode
	return out
}

// httpTarget returns what an attempt calls.
func (r *Runner) httpTarget(job *dts.Job) (*httpTarget, error) {
	if len(job.Inputs) == 0 {
		return r.targets.get(&job.Task.Spec, r.o.UserAgent)
	}
	spec, err := filled(&job.Task.Spec, job.Inputs)
	if err != nil {
		return nil, err
	}
	return newHTTPTarget(spec, r.o.UserAgent)
}

// request makes the request of one attempt. With resend the body can be sent again: by a 307 or 308 redirect,
// or when a kept connection turns out to be closed before a byte was written.
func (t *httpTarget) request(ctx context.Context, job *dts.Job, resend bool) *http.Request {
	req := (&http.Request{
		Method:     t.method,
		URL:        t.url,
		Host:       t.host,
		Header:     t.setHeaders(job),
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}).WithContext(ctx)
	if t.body == "" {
		return req
	}
	body := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(t.body)), nil }
	req.Body, _ = body()
	req.ContentLength = int64(len(t.body))
	if resend {
		req.GetBody = body
	}
	return req
}

var errBodyLimit = errors.New("the answer is too long")

// readBody copies at most maxBody bytes into c and reports whether they hold want.
func (r *Runner) readBody(body io.Reader, c *capture, want []byte) (found bool, err error) {
	if body == http.NoBody {
		return len(want) == 0, nil
	}
	buf := r.bufs.Get().(*[]byte)
	defer r.bufs.Put(buf)
	s := search{want: want, found: len(want) == 0}
	for left := maxBody; ; {
		n, err := body.Read((*buf)[:min(len(*buf), left)])
		if n > 0 {
			c.Write((*buf)[:n])
			s.write((*buf)[:n])
		}
		if err == io.EOF {
			return s.found, nil
		}
		if err != nil {
			return s.found, err
		}
		if left -= n; left == 0 {
			return s.found, errBodyLimit
		}
	}
}

// search looks for a text in a stream, also across the borders of what is written to it.
type search struct {
	want  []byte
	carry []byte // the end of the stream so far, shorter than want
	found bool
}

func (s *search) write(p []byte) {
	if s.found {
		return
	}
	s.carry = append(s.carry, p...)
	s.found = bytes.Contains(s.carry, s.want)
	if extra := len(s.carry) - (len(s.want) - 1); extra > 0 {
		s.carry = append(s.carry[:0], s.carry[extra:]...)
	}
}

// judge decides by status and body. on is what the task says about when to try again.
func (t *httpTarget) judge(resp *http.Response, found bool, on *dts.RetryOn) dts.Outcome {
	if t.succeeds(resp.StatusCode) {
		if found {
			return dts.Outcome{State: dts.AttemptSuccess}
		}
		return failed(on.Failure(dts.FailureBody, true), "answered %s, but the answer does not hold the text in expect_body", status(resp))
	}
	out := failed(false, "answered %s", status(resp))
	switch code := resp.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		out.Retryable = true
	case code >= 200 && code <= 299: // a success for most, not the one that the task waits for
		out.Retryable = true
		out.Error += ", which is not in expect_status"
	case code >= 300 && code <= 399 && resp.Header.Get("Location") != "":
		out.Error += "; the redirect was not followed"
	}
	if out.Retryable = on.Status(resp.StatusCode, out.Retryable); out.Retryable {
		out.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	return out
}

func status(resp *http.Response) string {
	return strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
}

// maxRetryAfter bounds what a target can ask for.
const maxRetryAfter = time.Hour

// retryAfter reads a Retry-After header, seconds or a date (RFC 9110, section 10.2.3). What it cannot read is 0; a number
// that is too large for it is read, as the longest time (RFC 9111, section 1.2.2).
func retryAfter(v string, now time.Time) time.Duration {
	if v == "" {
		return 0
	}
	if n, err := strconv.ParseUint(v, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) { // then n is the largest
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

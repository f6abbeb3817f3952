package dts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// TargetType says what kind of thing a task runs.
type TargetType string

const (
	HTTPCallback TargetType = "HTTP_CALLBACK"
	Command      TargetType = "COMMAND"
	WorkflowRun  TargetType = "WORKFLOW" // a run of a workflow; the scheduler itself does it
	// Ping runs nothing: it expects that a job elsewhere reports. See PingTarget.
	Ping TargetType = "PING"
)

// HTTPTarget is the target_config of HTTP_CALLBACK: one request. Any 2xx answer is a success, unless
// ExpectStatus or ExpectBody say otherwise.
type HTTPTarget struct {
	URL          string            `json:"url" doc:"http or https"`
	Method       string            `json:"method,omitempty" doc:"default: POST"`
	Headers      map[string]string `json:"headers,omitempty"`
	Body         string            `json:"body,omitempty"`
	ExpectStatus []int             `json:"expect_status,omitempty" doc:"statuses that count as success; default: 200-299"`
	ExpectBody   string            `json:"expect_body,omitempty" doc:"text that the body must contain"`
}

// CommandTarget is the target_config of COMMAND: a program by its argv, or a line for a shell.
type CommandTarget struct {
	Argv      []string          `json:"argv,omitempty" doc:"program and arguments; no shell reads them"`
	Shell     string            `json:"shell,omitempty" doc:"a line for the shell; either this or argv"`
	ShellPath string            `json:"shell_path,omitempty" doc:"the shell, called with -c; default: /bin/sh"`
	Env       map[string]string `json:"env,omitempty" doc:"added to a minimal environment"`
	Dir       string            `json:"dir,omitempty" doc:"working directory, absolute; default: the user's home"`
	User      string            `json:"user,omitempty" doc:"run as this user with its groups; only a server that runs as root can"`
	Stdin     string            `json:"stdin,omitempty"`
}

// HTTP decodes the target_config of an HTTP_CALLBACK that Normalize has accepted.
func (s *Spec) HTTP() (HTTPTarget, error) {
	var t HTTPTarget
	err := json.Unmarshal(s.TargetConfig, &t)
	return t, err
}

// Command decodes the target_config of a COMMAND that Normalize has accepted.
func (s *Spec) Command() (CommandTarget, error) {
	var t CommandTarget
	err := json.Unmarshal(s.TargetConfig, &t)
	return t, err
}

// decodeStrict decodes one JSON value and refuses unknown fields and anything after it.
func decodeStrict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("field %q must be %s, not %s", typeErr.Field, typeErr.Type, typeErr.Value)
		}
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

// Limits of a target_config.
const (
	MaxTargetBytes = 1 << 20 // the whole target_config
	maxURL         = 8 << 10
	maxHeaders     = 100
	maxArgs        = 4096
	maxEnv         = 256
)

// methods that a task may use. CONNECT and TRACE make no sense as a callback.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// reservedHeaders are set by dts or by the connection itself.
var reservedHeaders = []string{"idempotency-key", "x-dts-attempt", "x-dts-scheduled-at", "traceparent", "content-length", "transfer-encoding", "connection", "upgrade", "trailer", "te", "keep-alive"}

func checkTarget(f *fieldErrors, s *Spec) {
	switch s.TargetType {
	case HTTPCallback, Command, WorkflowRun, Backup, Ping:
	case "":
		f.add("target_type", "is missing; use HTTP_CALLBACK, COMMAND, WORKFLOW, BACKUP or PING")
		return
	default:
		f.add("target_type", "%q is not known; use HTTP_CALLBACK, COMMAND, WORKFLOW, BACKUP or PING", clip(string(s.TargetType)))
		return
	}
	if len(s.TargetConfig) == 0 || string(s.TargetConfig) == "null" {
		f.add("target_config", "is missing; it must be an object with the details of the %s", s.TargetType)
		return
	}
	if len(s.TargetConfig) > MaxTargetBytes {
		f.add("target_config", "is %d bytes long; at most %d are allowed", len(s.TargetConfig), MaxTargetBytes)
		return
	}
	switch s.TargetType {
	case HTTPCallback:
		checkHTTP(f, s)
	case Backup:
		checkBackup(f, s)
	case Command:
		checkCommand(f, s)
	case WorkflowRun:
		checkWorkflow(f, s)
	case Ping:
		checkPing(f, s)
	}
}

func checkHTTP(f *fieldErrors, s *Spec) {
	var t HTTPTarget
	if err := decodeStrict(s.TargetConfig, &t); err != nil {
		f.add("target_config", "is not a valid HTTP_CALLBACK: %s", err)
		return
	}
	switch u, err := url.Parse(t.URL); {
	case t.URL == "":
		f.add("target_config.url", "is missing")
	case len(t.URL) > maxURL:
		f.add("target_config.url", "is longer than %d bytes", maxURL)
	case err != nil:
		f.add("target_config.url", "is not a URL; it should look like https://host/path")
	case u.Scheme != "http" && u.Scheme != "https":
		f.add("target_config.url", "has the scheme %q; use http or https", clip(u.Scheme))
	case u.Host == "" || u.Hostname() == "":
		f.add("target_config.url", "has no host; it should look like https://host/path")
	}
	if t.Method != "" && !slices.Contains(methods, t.Method) {
		f.add("target_config.method", "%q is not allowed; use one of %s", clip(t.Method), strings.Join(methods, ", "))
	}
	if len(t.Headers) > maxHeaders {
		f.add("target_config.headers", "has %d entries; at most %d are allowed", len(t.Headers), maxHeaders)
	}
	for k, v := range t.Headers {
		switch {
		case !validHeaderName(k):
			f.add("target_config.headers", "%q is not a header name", clip(k))
		case slices.Contains(reservedHeaders, strings.ToLower(k)):
			f.add("target_config.headers", "%s is set by dts itself", k)
		case strings.ContainsAny(v, "\r\n\x00"):
			f.add("target_config.headers", "the value of %s holds a line break or NUL", k)
		}
	}
	for _, st := range t.ExpectStatus {
		if st < 100 || st > 599 {
			f.add("target_config.expect_status", "%d is not an HTTP status; use 100 to 599", st)
		}
	}
}

func checkCommand(f *fieldErrors, s *Spec) {
	var t CommandTarget
	if err := decodeStrict(s.TargetConfig, &t); err != nil {
		f.add("target_config", "is not a valid COMMAND: %s", err)
		return
	}
	switch {
	case len(t.Argv) == 0 && t.Shell == "":
		f.add("target_config", "needs argv (a program and its arguments) or shell (one line)")
	case len(t.Argv) > 0 && t.Shell != "":
		f.add("target_config", "has both argv and shell; keep one")
	case len(t.Argv) > 0 && t.Argv[0] == "":
		f.add("target_config.argv", "the program's name is empty")
	case len(t.Argv) > maxArgs:
		f.add("target_config.argv", "has %d entries; at most %d are allowed", len(t.Argv), maxArgs)
	}
	if t.ShellPath != "" && t.Shell == "" {
		f.add("target_config.shell_path", "needs shell")
	}
	if t.ShellPath != "" && !filepath.IsAbs(t.ShellPath) {
		f.add("target_config.shell_path", "must be an absolute path such as /bin/bash")
	}
	if t.Dir != "" && !filepath.IsAbs(t.Dir) {
		f.add("target_config.dir", "must be an absolute path, not %q", clip(t.Dir))
	}
	if len(t.Env) > maxEnv {
		f.add("target_config.env", "has %d entries; at most %d are allowed", len(t.Env), maxEnv)
	}
	for k, v := range t.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.HasPrefix(k, "DTS_") {
			f.add("target_config.env", "%q is not a usable name (no =, not beginning with DTS_)", clip(k))
		} else if strings.ContainsRune(v, 0) {
			f.add("target_config.env", "the value of %s holds a NUL byte", k)
		}
	}
	for _, text := range append([]string{t.Shell, t.ShellPath, t.Dir, t.User}, t.Argv...) {
		if strings.ContainsRune(text, 0) {
			f.add("target_config", "holds a NUL byte; programs cannot take one")
			break
		}
	}
}

// validHeaderName: an RFC 9110 token.
func validHeaderName(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// clip shortens what a user sent before it is quoted back.
func clip(s string) string {
	const n = 60
	if len(s) <= n {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	for i := n; i > 0; i-- {
		if utf8.RuneStart(s[i]) {
			return strings.ToValidUTF8(s[:i], "\uFFFD") + "…"
		}
	}
	return "…"
}

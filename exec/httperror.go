package exec

import (
	"compress/flate"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// retryableError reports whether a request that got no answer is worth another attempt. All are but the few
// that the answer of a working server caused.
func retryableError(err error) bool {
	text := err.Error()
	return !strings.Contains(text, "failed to parse Location header") && !strings.Contains(text, "unsupported protocol scheme")
}

// explain says in a few plain words why a request got no answer. target is where it began; after a redirect
// the failing host is another, which the error knows.
func (r *Runner) explain(err error, target *url.URL) string {
	host := target.Host
	if u, ok := errors.AsType[*url.Error](err); ok {
		if at, parseErr := url.Parse(u.URL); parseErr == nil && at.Host != "" {
			host = at.Host
		}
		err = u.Err
	}
	op, isOp := errors.AsType[*net.OpError](err)
	if isOp && op.Addr != nil {
		host = op.Addr.String()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "no host is named " + clip(dns.Name)
		}
		return "could not look up " + clip(dns.Name)
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate of " + host + " is not trusted: " + certificateFault(cert.Err)
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return host + " refused the TLS handshake: " + alert.Error()
	}
	if fault := answerFault(err); fault != "" {
		return host + " " + fault
	}
	var timeout net.Error
	timedOut := errors.As(err, &timeout) && timeout.Timeout()
	text := err.Error()
	switch {
	case isOp && op.Op == "dial" && timedOut, strings.Contains(text, "TLS handshake timeout"):
		return "no connection to " + host + " within " + short(r.o.ConnectTimeout)
	case errors.As(err, new(tls.RecordHeaderError)), strings.Contains(text, "HTTP response to HTTPS client"):
		return host + " does not speak TLS"
	case strings.Contains(text, "awaiting response headers"):
		return "no answer within " + short(r.o.HeaderTimeout)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "no connection to " + host + ": the server is out of file descriptors"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused by " + host
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset by " + host
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to " + host
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(text, "server closed idle connection"),
		strings.Contains(text, "transport connection broken"):
		return "connection closed by " + host
	case strings.Contains(text, "failed to parse Location header"):
		return "redirected to something that is not a URL"
	case strings.Contains(text, "unsupported protocol scheme"):
		return "redirected to a URL that is neither http nor https"
	}
	return "request to " + host + " failed: " + scrub(text)
}

// invalidHTTP are texts of net/http about an answer that breaks the protocol. They come with details of their own.
var invalidHTTP = []string{"malformed MIME header", "Content-Length", "unsupported transfer encoding", "chunk", "header line too long", "trailer"}

// answerFault says what is wrong with an answer that came, "" when it is something else.
func answerFault(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, new(flate.CorruptInputError)):
		return "says that its answer is gzip, and it is not"
	case strings.Contains(text, "response headers exceeded"):
		return "sends a header of more than " + strconv.Itoa(maxAnswerHeader>>10) + " KiB"
	case strings.Contains(text, "malformed HTTP"):
		return "does not answer in HTTP"
	}
	for _, s := range invalidHTTP {
		if strings.Contains(text, s) {
			text = strings.TrimPrefix(text, "net/http: HTTP/1.x transport connection broken: ")
			return "breaks the rules of HTTP: " + scrub(strings.TrimPrefix(strings.TrimPrefix(text, "http: "), "http "))
		}
	}
	return ""
}

// certificateFault keeps to the kinds of x509 error whose text is known to be harmless.
func certificateFault(err error) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return "it is signed by an unknown authority"
	case errors.As(err, &hostname):
		return "it is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "it has expired or is not valid yet"
	default:
		return scrub(err.Error())
	}
}

var quotedOrURL = regexp.MustCompile(`"(\\.|[^"\\])*"|[a-zA-Z][a-zA-Z0-9+.-]*://\S*`)

// scrub shortens a text of net/http and takes out what it quotes: that may be an address with a secret.
func scrub(text string) string { return clip(quotedOrURL.ReplaceAllString(text, "…")) }

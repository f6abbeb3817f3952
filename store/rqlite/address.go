package rqlite

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
)

// maxNodes bounds the addresses of a cluster: rqlite's own clusters have 3, 5 or 7 voting nodes.
const maxNodes = 64

// SplitURLs splits a list of addresses as it is given on a command line: by commas or white space.
func SplitURLs(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
}

// Check reads the addresses and the certificates, and asks nobody.
func (o Options) Check() error {
	_, err := newNodes(o)
	return err
}

// Addresses are the URLs without the credentials. Check must have found nothing wrong.
func (o Options) Addresses() []string {
	var list []string
	for _, text := range o.URLs {
		if u, err := parseURL(text); err == nil {
			list = append(list, u.Scheme+"://"+u.Host)
		}
	}
	return list
}

// newNodes makes a client for each address.
func newNodes(o Options) ([]*node, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("no address given; give at least one, such as http://127.0.0.1:4001")
	}
	if len(o.URLs) > maxNodes {
		return nil, fmt.Errorf("%d addresses are given; use at most %d", len(o.URLs), maxNodes)
	}
	conf, err := tlsConfig(o)
	if err != nil {
		return nil, err
	}
	var nodes []*node
	seen := make(map[string]bool)
	https := false
	for i, text := range o.URLs {
		u, err := parseURL(text)
		if err != nil {
			return nil, fmt.Errorf("address %d: %w", i+1, err)
		}
		if seen[u.Host] {
			return nil, fmt.Errorf("address %d: %s is named twice", i+1, u.Host)
		}
		seen[u.Host] = true
		https = https || u.Scheme == "https"
		n, err := newNode(u, conf)
		if err != nil {
			return nil, fmt.Errorf("address %d: %w", i+1, err)
		}
		nodes = append(nodes, n)
	}
	if !https && (o.CAFile != "" || o.CertFile != "") {
		return nil, errors.New("certificates are given, but no address begins with https://")
	}
	return nodes, nil
}

// parseURL reads an address. Its errors do not show the text: it may hold a password.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it is not a URL; it should look like http://host:4001 or https://user:password@host:4001, with %40 for an @ in the password")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it should begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s: it should end after the port", u.Host)
	}
	if u.Port() == "" {
		u.Host += ":4001"
	}
	return u, nil
}

// renewed returns what shows a certificate as it is in its files at each new connection, so that one that is renewed counts
// without a restart. While the files cannot be read, or do not fit each other, it is the last one that did.
func renewed(pair tls.Certificate, certFile, keyFile string) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	var mu sync.Mutex
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		if now, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil {
			pair = now
		}
		shown := pair
		return &shown, nil
	}
}

// tlsConfig reads the certificates; nil without any.
func tlsConfig(o Options) (*tls.Config, error) {
	if o.CAFile == "" && o.CertFile == "" && o.KeyFile == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificates of authorities: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM form", o.CAFile)
		}
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, errors.New("a client certificate needs its key, and a key its certificate")
	}
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		conf.GetClientCertificate = renewed(pair, o.CertFile, o.KeyFile)
	}
	return conf, nil
}

package rqlite

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dts/store/rqlite/rqlitetest"
)

// logBuffer collects what is logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) count(s string) int { return strings.Count(l.String(), s) }

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// certificate writes a certificate and its key, signed by parent or by itself, and returns the files.
func certificate(t *testing.T, dir, name string, parent *tls.Certificate) (certFile, keyFile string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: parent == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer, signKey := c, any(key)
	if parent != nil {
		if signer, err = x509.ParseCertificate(parent.Certificate[0]); err != nil {
			t.Fatal(err)
		}
		signKey = parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer, &key.PublicKey, signKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	for name, b := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, pair
}

// TestCredentials: passwords and certificates are used, and neither a log nor an error shows a password.
func TestCredentials(t *testing.T) {
	rqlitetest.Binary(t)
	const password = "s3cr3t:/@%?"
	dir := t.TempDir()
	caFile, _, ca := certificate(t, dir, "ca", nil)
	certFile, keyFile, _ := certificate(t, dir, "server", &ca)
	clientCert, clientKey, client := certificate(t, dir, "client", &ca)
	auth := filepath.Join(dir, "auth.json")
	if err := os.WriteFile(auth, fmt.Appendf(nil, `[{"username": "dts", "password": %q, "perms": ["execute", "query", "ready", "status"]}]`, password), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(must(x509.ParseCertificate(ca.Certificate[0])))
	c := rqlitetest.Start(t, rqlitetest.Options{
		Args:  []string{"-auth", auth, "-http-cert", certFile, "-http-key", keyFile, "-http-ca-cert", caFile, "-http-verify-client"},
		HTTPS: true, User: "dts", Password: password,
		Client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{client}}}},
	})
	log := &logBuffer{}
	good := Options{URLs: c.URLs(), CAFile: caFile, CertFile: clientCert, KeyFile: clientKey, Logger: log.logger()}
	d := openTest(t, good)
	mustApply(t, d, put(1, "a"))
	if h := d.Health(); strings.Contains(fmt.Sprint(h), "s3cr3t") || !strings.HasPrefix(h.Node, "https://127.0.0.1:") {
		t.Errorf("health %+v", h)
	}
	for name, edit := range map[string]func(*Options){
		"refuses the user and password":           func(o *Options) { o.URLs = []string{"https://dts:s3cr3tX@" + c.Nodes()[0].Address()} },
		"refuses the user and password ":          func(o *Options) { o.URLs = []string{"https://" + c.Nodes()[0].Address()} },
		"certificate signed by unknown authority": func(o *Options) { o.CAFile = "" },
		"certificate required":                    func(o *Options) { o.CertFile, o.KeyFile = "", "" },
		"answers 400": func(o *Options) {
			o.URLs = []string{"http://dts:s3cr3t@" + c.Nodes()[0].Address()}
			o.CAFile, o.CertFile, o.KeyFile = "", "", ""
		},
	} {
		o := good
		edit(&o)
		o.Migrations, o.OpenTimeout = testMigrations(1), time.Second
		d, err := Open(t.Context(), o)
		if err == nil {
			d.Close()
			t.Errorf("want an error with %q", name)
			continue
		}
		if !strings.Contains(err.Error(), strings.TrimSpace(name)) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("want an error with %q and no password: %v", name, err)
		}
	}
	c.Nodes()[0].Kill()
	d.o.WriteTimeout = 300 * time.Millisecond
	if _, err := d.Apply(t.Context(), put(2, "b")); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("want an error without a password: %v", err)
	}
	if log.count("s3cr3t") > 0 || log.count("does not answer") != 1 {
		t.Errorf("the log shows the password, or not that rqlite is gone:\n%s", log)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestRefusedOptions: what cannot work is refused before anything is asked, and no error shows a password.
func TestRefusedOptions(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := certificate(t, dir, "c", nil)
	for want, o := range map[string]Options{
		"no address given":             {},
		"it is not a URL":              {URLs: []string{"http://u:s3cr3t%@h:4001"}},
		"should begin with http":       {URLs: []string{"u:s3cr3t@h:4001"}},
		"should begin with http:// ":   {URLs: []string{"postgres://u:s3cr3t@h:4001"}},
		"names no host":                {URLs: []string{"http://u:s3cr3t@/"}},
		"should end after the port":    {URLs: []string{"http://u:s3cr3t@h:4001/db"}},
		"should end after the port ":   {URLs: []string{"http://u:s3cr3t@h:4001?level=none"}},
		"named twice":                  {URLs: []string{"http://u:s3cr3t@h", "http://h:4001"}},
		"no address begins with https": {URLs: []string{"http://h:4001"}, CAFile: cert},
		"needs its key":                {URLs: []string{"https://h:4001"}, CertFile: cert},
		"holds no certificate":         {URLs: []string{"https://h:4001"}, CAFile: key},
		"no such file":                 {URLs: []string{"https://h:4001"}, CAFile: filepath.Join(dir, "none")},
		"read the client certificate":  {URLs: []string{"https://h:4001"}, CertFile: key, KeyFile: key},
		"use at most 64":               {URLs: make([]string, 65)},
	} {
		err := o.Check()
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("want an error with %q and no password: %v", want, err)
		}
	}
	o := Options{URLs: SplitURLs(" http://u:p@a, https://b:1\nhttp://[::1]:4001 ")}
	if err := o.Check(); err != nil || fmt.Sprint(o.Addresses()) != "[http://a:4001 https://b:1 http://[::1]:4001]" {
		t.Errorf("%v, %v", o.Addresses(), err)
	}
}

// TestWrongServer: what is not rqlite, or too old, is refused at once.
func TestWrongServer(t *testing.T) {
	for want, version := range map[string]string{
		"is not a node of rqlite":                     "",
		"has version v7.21.4; use version 8 or newer": "v7.21.4",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if version != "" {
				w.Header().Set("X-Rqlite-Version", version)
			}
			fmt.Fprint(w, `{"results":[{"columns":["n"],"types":["integer"],"values":[[1]]}]}`)
		}))
		start := time.Now()
		d, err := Open(context.Background(), Options{URLs: []string{srv.URL}, Migrations: testMigrations(1)})
		if err == nil {
			d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || time.Since(start) > 5*time.Second {
			t.Errorf("want %q at once: %v after %v", want, err, time.Since(start))
		}
		srv.Close()
	}
}

// TestNobodyThere: Open waits as long as it was told, and Close ends what would wait longer.
func TestNobodyThere(t *testing.T) {
	o := Options{URLs: []string{"http://u:s3cr3t@127.0.0.1:1"}, Migrations: testMigrations(1), OpenTimeout: 200 * time.Millisecond}
	_, err := Open(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("want a refused connection and no password: %v", err)
	}
	d := must(connect(o))
	done := make(chan error, 2)
	go func() { _, err := d.Apply(context.Background(), put(1, "a")); done <- err }()
	go func() { _, err := d.Query(context.Background(), 0, put(1, "a")); done <- err }()
	time.Sleep(100 * time.Millisecond)
	start := time.Now()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-done; err == nil {
			t.Error("there was nobody, and no error")
		}
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
}

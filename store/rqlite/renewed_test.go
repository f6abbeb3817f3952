package rqlite

import (
	"bytes"
	"os"
	"testing"
)

// TestRenewedCertificate: a client certificate that is renewed is shown from the next connection on; half of a renewal is not.
func TestRenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, first := certificate(t, dir, "client", nil)
	conf, err := tlsConfig(Options{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	shows := func(what string, want []byte) {
		t.Helper()
		c, err := conf.GetClientCertificate(nil)
		if err != nil || !bytes.Equal(c.Certificate[0], want) {
			t.Errorf("%s: another certificate, or %v", what, err)
		}
	}
	shows("at first", first.Certificate[0])
	oldKey, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	_, _, second := certificate(t, dir, "client", nil)
	newKey, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		key  []byte
		want []byte
	}{{oldKey, first.Certificate[0]}, {newKey, second.Certificate[0]}, {nil, second.Certificate[0]}} {
		if err := os.WriteFile(keyFile, step.key, 0o600); err != nil {
			t.Fatal(err)
		}
		shows("after a change", step.want)
	}
}

package store_test

import (
	"sync"
	"testing"

	"dts"
)

func TestClusterSecret(t *testing.T) {
	st, _, _ := open(t)
	secrets := make([]string, 8) // as many servers start at once
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() {
			var err error
			if secrets[i], err = st.ClusterSecret(ctx, string(rune('a'+i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, s := range secrets {
		if s == "" || s != secrets[0] {
			t.Errorf("the servers have different secrets: %q", secrets)
			break
		}
	}
}

func TestReplaceToken(t *testing.T) {
	st, _, _ := open(t)
	token := func(hash, name string, kind dts.TokenKind) dts.Token {
		return dts.Token{Hash: hash, TenantID: dts.DefaultTenant, Kind: kind, Name: name, Admin: true, CreatedAt: now}
	}
	for _, k := range []dts.Token{token("session", "a", dts.TokenSession), token("other", "b", dts.TokenAPI)} {
		if err := st.PutToken(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	known := func(hash string) bool {
		_, found, err := st.Token(ctx, hash)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, hash := range []string{"one", "one", "two"} {
		if err := st.ReplaceToken(ctx, token(hash, "a", dts.TokenAPI)); err != nil {
			t.Fatal(err)
		}
		if !known(hash) {
			t.Errorf("the token %s is not known", hash)
		}
	}
	if known("one") || !known("session") || !known("other") {
		t.Errorf("one is known: %t; session: %t; other: %t", known("one"), known("session"), known("other"))
	}
}

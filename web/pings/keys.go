package pings

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Keys makes the keys of ping URLs from the ids of recurring tasks, and ids from keys. A key is the id and 128 bits that only
// who has the secret can compute: it can be shown again, is stored nowhere, and one that is wrong is refused without a look
// into the database, in a time that does not depend on what is wrong with it.
type Keys struct{ secret []byte }

// NewKeys returns the keys of a secret.
func NewKeys(secret string) Keys { return Keys{[]byte(secret)} }

const (
	idBytes  = 16
	macBytes = 16
)

var encoding = base64.RawURLEncoding.Strict()

// Key returns the key of a recurring task's ping URL: 43 letters, digits, - and _. "" for what is not an id.
func (k Keys) Key(id string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(b) != idBytes {
		return ""
	}
	return encoding.EncodeToString(append(b, k.mac(b)...))
}

// ID returns the recurring task whose key this is; false when it is nobody's.
func (k Keys) ID(key string) (string, bool) {
	var b [idBytes + macBytes]byte
	right := len(key) == encoding.EncodedLen(len(b))
	if right {
		_, err := encoding.Decode(b[:], []byte(key))
		right = err == nil
	}
	if !hmac.Equal(b[idBytes:], k.mac(b[:idBytes])) || !right {
		return "", false
	}
	s := hex.EncodeToString(b[:idBytes])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:], true
}

func (k Keys) mac(id []byte) []byte {
	m := hmac.New(sha256.New, k.secret)
	m.Write([]byte("ping URL\x00"))
	m.Write(id)
	return m.Sum(nil)[:macBytes]
}

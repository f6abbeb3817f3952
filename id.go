package dts

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// DefaultTenant owns everything in a single-team installation.
const DefaultTenant = "default"

// NewID returns a UUID version 7 in its 36-character text form (RFC 9562, section 5.7). The 12 bits after
// the version hold the fraction of the millisecond (method 3 of section 6.2), so ids made one after the
// other sort that way and a B-tree keyed by them grows at its right edge.
func NewID(now time.Time) string {
	var b [16]byte
	ns := now.UnixNano()
	ms := ns / 1e6
	binary.BigEndian.PutUint64(b[:8], uint64(ms)<<16)
	binary.BigEndian.PutUint16(b[6:8], uint16((ns%1e6)<<12/1e6))
	rand.Read(b[8:])
	return formatID(b)
}

// formatID makes the text form of an id, and marks it as a UUID version 7.
func formatID(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// IsID reports whether s has the form of an id: 36 characters, lower-case hexadecimal and hyphens.
func IsID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// Micros cuts a time to whole microseconds in UTC, the resolution at which times are kept.
func Micros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

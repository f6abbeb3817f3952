package api

import (
	"strings"
	"unicode/utf8"
)

// textStream turns chunks of bytes into "output" events of text. A character that is cut in two by the end
// of a chunk is held back until the rest comes. What is not UTF-8 is replaced by U+FFFD.
type textStream struct {
	s      *stream
	number int
	next   int64  // offset after the last byte taken
	held   []byte // the beginning of a character, before next
}

// write takes a chunk that ends at offset next. What lies between the last chunk and this one was dropped.
func (t *textStream) write(chunk []byte, next int64) error {
	from := next - int64(len(chunk))
	dropped := from - t.next
	if dropped > 0 {
		if err := t.flush(); err != nil {
			return err
		}
	}
	from -= int64(len(t.held))
	b := append(t.held, chunk...)
	cut := len(b) - incomplete(b)
	t.held = append([]byte(nil), b[cut:]...)
	t.next = next
	if cut == 0 && dropped <= 0 {
		return nil
	}
	return t.send(from, max(dropped, 0), b[:cut])
}

// flush sends a character that will not be completed.
func (t *textStream) flush() error {
	if len(t.held) == 0 {
		return nil
	}
	b := t.held
	t.held = nil
	return t.send(t.next-int64(len(b)), 0, b)
}

func (t *textStream) send(offset, dropped int64, b []byte) error {
	return t.s.send("output", OutputChunk{Attempt: t.number, Offset: offset, Dropped: dropped, Text: strings.ToValidUTF8(string(b), "\uFFFD")})
}

// incomplete returns how many bytes at the end of b may be the beginning of a character: 0 to 3.
func incomplete(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

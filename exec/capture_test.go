package exec

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"dts"
)

// The kept parts are the first and the last bytes of the stream, however it is cut into writes, and a reader
// that follows sees a contiguous piece at the offset it is told.
func TestCaptureKeepsBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 3000), rapid.IntRange(0, 3*dts.OutputKept)), 0, 12).Draw(t, "sizes")
		var c capture
		var all []byte
		offset := int64(0)
		for _, n := range sizes {
			p := make([]byte, n)
			for i := range p {
				p[i] = byte((len(all) + i) * 31 / 7)
			}
			all = append(all, p...)
			if k, err := c.Write(p); k != n || err != nil {
				t.Fatalf("Write = %d, %v; want %d", k, err, n)
			}
			if offset < int64(len(all)) && rapid.Bool().Draw(t, "read") {
				chunk, next, done, err := c.Read(context.Background(), offset)
				if err != nil || done || next <= offset || len(chunk) == 0 {
					t.Fatalf("Read(%d) = %d bytes, %d, %v, %v", offset, len(chunk), next, done, err)
				}
				if want := all[next-int64(len(chunk)) : next]; !bytes.Equal(chunk, want) {
					t.Fatalf("Read(%d) gave other bytes than were written", offset)
				}
				if gap := next - int64(len(chunk)) - offset; gap > 0 && next != int64(len(all)) {
					t.Fatalf("Read(%d) skipped %d bytes and did not reach the end", offset, gap)
				}
				offset = next
			}
		}
		c.finish()
		out := c.output()
		head := all[:min(len(all), dts.OutputKept)]
		rest := all[len(head):]
		tail := rest[max(0, len(rest)-dts.OutputKept):]
		if !bytes.Equal(out.Head, head) || !bytes.Equal(out.Tail, tail) || out.Total != int64(len(all)) {
			t.Fatalf("kept %d + %d of %d; want %d + %d of %d", len(out.Head), len(out.Tail), out.Total, len(head), len(tail), len(all))
		}
	})
}

func TestCaptureReadWaits(t *testing.T) {
	var c capture
	type result struct {
		chunk string
		done  bool
		err   error
	}
	got := make(chan result)
	read := func(ctx context.Context, offset int64) {
		chunk, _, done, err := c.Read(ctx, offset)
		got <- result{string(chunk), done, err}
	}
	go read(t.Context(), 0)
	io.WriteString(&c, "hello")
	if r := <-got; r.chunk != "hello" || r.done || r.err != nil {
		t.Errorf("first read: %+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go read(ctx, 5)
	cancel()
	if r := <-got; !errors.Is(r.err, context.Canceled) {
		t.Errorf("cancelled read: %+v", r)
	}
	go read(t.Context(), 5)
	c.finish()
	if r := <-got; r.chunk != "" || !r.done || r.err != nil {
		t.Errorf("last read: %+v", r)
	}
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestConsoleKeepsLines: of runs that print at the same time, in pieces of any size, each line comes whole, once, and in its order.
func TestConsoleKeepsLines(t *testing.T) {
	const runs, each = 8, 5000
	var out bytes.Buffer
	c := newConsole(&out, false)
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			name := fmt.Sprintf("task-%d", i)
			l := c.lines(label{name + " | ", name + " … "})
			var text []byte
			for n := range each {
				text = fmt.Appendf(text, "%s says %d %s\n", name, n, strings.Repeat("x", n%97))
			}
			text = append(text, "and no end"...)
			for len(text) > 0 {
				k := min(1+rand.IntN(900), len(text))
				if n, err := l.Write(text[:k]); n != k || err != nil {
					t.Errorf("Write = %d %v, want %d", n, err, k)
				}
				text = text[k:]
			}
			l.Close()
		})
	}
	wg.Wait()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for line := range strings.Lines(out.String()) {
		name, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		n := next[name]
		want := fmt.Sprintf("%s says %d %s", name, n, strings.Repeat("x", n%97))
		if n == each {
			want = "and no end"
		}
		if !ok || text != want {
			t.Fatalf("line %d of %s is %q, want %q", n, name, text, want)
		}
		next[name]++
	}
	for i := range runs {
		if n := next[fmt.Sprintf("task-%d", i)]; n != each+1 {
			t.Errorf("task-%d has %d lines, want %d", i, n, each+1)
		}
	}
}

func TestConsoleLines(t *testing.T) {
	long := strings.Repeat("é", longestLine)
	for _, x := range []struct{ name, in, want string }{
		{"lines", "a\nb\n", "T|a\nT|b\n"},
		{"empty lines stay", "a\n\n\nb", "T|a\nT|\nT|\nT|b\n"},
		{"Windows", "a\r\nb\r\n\r\n", "T|a\nT|b\nT|\n"},
		{"a bar", "\r10%\r20%\r\rdone\n", "T|10%\nT|20%\nT|done\n"},
		{"a long line", long + "\n", "T|" + long[:longestLine] + "\n:" + long[longestLine:] + "\n"},
		{"not in the middle of a character", "a" + long + "\n", "T|a" + long[:longestLine-2] + "\n:" + long[longestLine-2:2*longestLine-2] + "\n:é\n"},
		{"nothing", "", ""},
	} {
		for _, step := range []int{1 << 20, 1} {
			var out bytes.Buffer
			c := newConsole(&out, false)
			l := c.lines(label{"T|", ":"})
			for in := x.in; in != ""; {
				k := min(step, len(in))
				l.Write([]byte(in[:k]))
				in = in[k:]
			}
			l.Close()
			c.Close()
			if got := out.String(); got != x.want {
				t.Errorf("%s in steps of %d: %.80q, want %.80q", x.name, step, got, x.want)
			}
		}
	}
}

// TestConsoleShowsParts: what has no end yet is shown after a second, and what follows is marked as its rest.
func TestConsoleShowsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := newConsole(&out, false)
		l := c.lines(label{"T|", ":"})
		l.Write([]byte("Password"))
		time.Sleep(partAfter / 2)
		l.Write([]byte("? "))
		time.Sleep(partAfter)
		synctest.Wait()
		if got := out.String(); got != "T|Password? \n" {
			t.Errorf("after a second: %q", got)
		}
		l.Write([]byte("no\nnext\n"))
		l.Close()
		c.Close()
		if got := out.String(); got != "T|Password? \n:no\nT|next\n" {
			t.Errorf("at the end: %q", got)
		}
	})
}

// TestConsoleColours: what a line has coloured ends with it.
func TestConsoleColours(t *testing.T) {
	var out bytes.Buffer
	c := newConsole(&out, true)
	l := c.lines(label{"T|", ":"})
	l.Write([]byte("\x1b[31mred\nplain\n"))
	c.Close()
	if got := out.String(); got != "T|\x1b[31mred\x1b[0m\nT|plain\n" {
		t.Errorf("%q", got)
	}
}

// TestConsoleWaits: nobody fills the memory while the reader is slow, but what a process that has exited left behind is taken.
func TestConsoleWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		c := newConsole(write, false)
		l, ended := c.lines(label{"T|", ":"}), make(chan struct{})
		wrote := 0
		go func() {
			defer close(ended)
			line := []byte(strings.Repeat("x", 9999) + "\n")
			for range 200 {
				l.Write(line)
				wrote++
			}
			l.Close()
		}()
		synctest.Wait()
		if wrote > 2*consoleRoom/10000+2 {
			t.Errorf("%d lines of 10 kB were taken, which nobody reads", wrote)
		}
		l.exit()
		<-ended
		go io.Copy(io.Discard, read)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		write.Close()
	})
}

// TestConsoleFails: where the reader has gone, runs go on, and whoever started them is told.
func TestConsoleFails(t *testing.T) {
	read, write := io.Pipe()
	c := newConsole(write, false)
	read.CloseWithError(errors.New("gone"))
	l := c.lines(label{"T|", ":"})
	for range 100 {
		l.Write(bytes.Repeat([]byte("xxxxxxx\n"), 1000))
	}
	<-c.failed
	if err := c.flush(); err == nil || err.Error() != "gone" {
		t.Errorf("flush: %v", err)
	}
	if err := c.Close(); err == nil {
		t.Error("Close says nothing")
	}
}

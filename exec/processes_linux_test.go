package exec

import (
	"testing"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2"
	for _, s := range []string{"7 (sh)" + rest, "7 (a b)" + rest, "7 (x) S 1 9 9 ()" + rest, "7 ())" + rest} {
		if st, err := parseStat(s); err != nil || st != (stat{'S', 42, 987654}) {
			t.Errorf("%q: %+v, %v", s, st, err)
		}
	}
	for _, s := range []string{"", "7", "7 (sh) S 1 2", "7 (sh) S 1 x 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1 1"} {
		if st, err := parseStat(s); err == nil {
			t.Errorf("%q: %+v", s, st)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (sh) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2")
	f.Add(")")
	f.Fuzz(func(t *testing.T, s string) { parseStat(s) })
}

package taskfile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// marshal writes JSON as people would, with < and & as they are.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

func encode(v any) json.RawMessage {
	b, err := marshal(v)
	if err != nil {
		panic("taskfile: " + err.Error()) // of maps, lists, texts and checked numbers
	}
	return b
}

// join is the path of a member.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// quote quotes what a user wrote, shortened.
func quote(s string) string {
	const n = 60
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return strconv.Quote(s)
}

// either lists words: "A, B or C".
func either(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

package sched

import (
	"bytes"
	"encoding/json"
	"strings"
)

// targetOf finds the host that a target_config of HTTP_CALLBACK calls, as scheme://host:port in lower case with a default
// port left out, and the URL without its query. Both are empty where there is none. It goes through the text once and
// decodes nothing else: a config may be a megabyte long, and this is asked before each start.
func targetOf(config []byte) (host, url string) {
	raw := topLevel(config, "url")
	if len(raw) < 2 || raw[0] != '"' {
		return "", ""
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		if json.Unmarshal(raw, &url) != nil {
			return "", ""
		}
	} else {
		url = string(raw[1 : len(raw)-1])
	}
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return "", ""
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		authority = authority[at+1:]
	}
	scheme, authority = strings.ToLower(scheme), strings.ToLower(authority)
	switch scheme {
	case "http":
		authority = strings.TrimSuffix(authority, ":80")
	case "https":
		authority = strings.TrimSuffix(authority, ":443")
	}
	if authority == "" {
		return "", ""
	}
	path := rest[end:]
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	host = scheme + "://" + authority
	return host, host + path
}

// topLevel returns the text of a field of a JSON object that is known to be valid; nil where it has none. As with
// encoding/json, the case of the name does not matter, and the last one counts.
func topLevel(text []byte, name string) (value []byte) {
	depth, start := 0, 0
	var key []byte // of the field at depth 1 whose value is being read; nil: a key comes next
	done := func(end int) {
		if key != nil && strings.EqualFold(string(key), name) {
			value = bytes.TrimSpace(text[start:end])
		}
		key = nil
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			from := i
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 1 && key == nil && i < len(text) {
				key = text[from+1 : i]
				if bytes.IndexByte(key, '\\') >= 0 {
					var plain string
					if json.Unmarshal(text[from:i+1], &plain) == nil {
						key = []byte(plain)
					}
				}
			}
		case ':':
			if depth == 1 {
				start = i + 1
			}
		case ',':
			if depth == 1 {
				done(i)
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				done(i)
			}
		}
	}
	return value
}

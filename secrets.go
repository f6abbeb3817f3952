package dts

import (
	"net/url"
	"slices"
	"strings"
)

// Masked stands in the place of a value that is not shown.
const Masked = "••••••"

// secretParts are the parts of names whose values are secrets.
var secretParts = []string{"auth", "cookie", "token", "key", "secret", "passw", "credential", "signature"}

// SecretName reports whether the value of a header, variable or parameter of this name must not be shown.
func SecretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(name, part) })
}

// SafeURL hides the password and the secret parameters of an address, to show it.
func SafeURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return Masked
	}
	hidden := false
	if _, has := u.User.Password(); has {
		u.User, hidden = url.UserPassword(u.User.Username(), "hidden"), true
	}
	if u.RawQuery != "" {
		parts := strings.Split(u.RawQuery, "&")
		for i, part := range parts {
			if name, _, found := strings.Cut(part, "="); found && SecretName(name) {
				parts[i], hidden = name+"=hidden", true
			}
		}
		u.RawQuery = strings.Join(parts, "&")
	}
	if !hidden {
		return raw
	}
	return u.String()
}

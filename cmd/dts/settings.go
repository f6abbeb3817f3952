package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dts"
)

// serverSetting is a setting of a server, for those who compare two versions of them.
type serverSetting struct {
	name string // in the configuration file
	live bool   // it can be changed while the server runs
	text func(*serverOptions) string
	set  func(to, from *serverOptions) // of one that is live
}

// serverSettings are all that there are. What is a secret, or holds one, is not in their texts.
func serverSettings() []serverSetting {
	fixed := func(name string, text func(o *serverOptions) string) serverSetting {
		return serverSetting{name: name, text: text}
	}
	return []serverSetting{
		{"log_level", true, func(o *serverOptions) string { return strings.ToLower(o.LogLevel.String()) }, func(to, from *serverOptions) { to.LogLevel = from.LogLevel }},
		{"allowed_hosts", true, func(o *serverOptions) string { return strings.Join(o.AllowedHosts, ", ") }, func(to, from *serverOptions) { to.AllowedHosts = from.AllowedHosts }},
		{"max_http", true, func(o *serverOptions) string { return numberOr(o.HTTPSlots) }, func(to, from *serverOptions) { to.HTTPSlots = from.HTTPSlots }},
		{"max_commands", true, func(o *serverOptions) string { return numberOr(o.CommandSlots) }, func(to, from *serverOptions) { to.CommandSlots = from.CommandSlots }},
		{"drain", true, func(o *serverOptions) string { return exactly(o.DrainTimeout) }, func(to, from *serverOptions) { to.DrainTimeout = from.DrainTimeout }},
		{"keep", true, func(o *serverOptions) string { return exactly(o.Retention) }, func(to, from *serverOptions) { to.Retention = from.Retention }},
		{"keep_rows", true, func(o *serverOptions) string { return strconv.FormatInt(o.RetentionRows, 10) }, func(to, from *serverOptions) { to.RetentionRows = from.RetentionRows }},
		{"keep_size", true, func(o *serverOptions) string { return sizeOrNone(o.RetentionBytes) }, func(to, from *serverOptions) { to.RetentionBytes = from.RetentionBytes }},
		{"heartbeat_url", true, func(o *serverOptions) string { return o.Heartbeat.where() }, func(to, from *serverOptions) { to.Heartbeat.URL = from.Heartbeat.URL }},
		{"heartbeat_every", true, func(o *serverOptions) string { return exactly(o.Heartbeat.Every) }, func(to, from *serverOptions) { to.Heartbeat.Every = from.Heartbeat.Every }},

		fixed("data", func(o *serverOptions) string { return o.DataDir }),
		fixed("listen", func(o *serverOptions) string { return o.Listen }),
		fixed("socket_group", func(o *serverOptions) string { return strconv.FormatBool(o.SocketGroup) }),
		fixed("rqlite", func(o *serverOptions) string { return strings.Join(o.RQLite.Addresses(), ", ") }),
		fixed("rqlite_ca", func(o *serverOptions) string { return o.RQLite.CAFile }),
		fixed("rqlite_cert", func(o *serverOptions) string { return o.RQLite.CertFile }),
		fixed("rqlite_key", func(o *serverOptions) string { return o.RQLite.KeyFile }),
		fixed("public_url", func(o *serverOptions) string { return o.PublicURL }),
		fixed("advertise", func(o *serverOptions) string { return o.Advertise }),
		fixed("cpu_budget", func(o *serverOptions) string { return fmt.Sprintf("%g", o.CPUBudget) }),
		fixed("memory_budget", func(o *serverOptions) string { return fmt.Sprintf("%dM", o.MemoryBudgetMB) }),
		fixed("host_limits", func(o *serverOptions) string { return strconv.FormatBool(!o.NoHostLimits) }),
		fixed("trust_clock", func(o *serverOptions) string { return strconv.FormatBool(o.TrustClock) }),
		fixed("log_format", func(o *serverOptions) string { return o.LogFormat }),
	}
}

// same reports whether a setting is the same in both, secrets included.
func (s *serverSetting) same(a, b *serverOptions) bool {
	switch s.name {
	case "heartbeat_url":
		return a.Heartbeat.URL == b.Heartbeat.URL
	case "rqlite":
		return strings.Join(a.RQLite.URLs, ",") == strings.Join(b.RQLite.URLs, ",")
	}
	return s.text(a) == s.text(b)
}

// changeSettings makes of how a server runs how it is to run now, and says what differs from that.
func changeSettings(now, wanted *serverOptions) (changed serverOptions, list []dts.SettingChange) {
	changed = *now
	list = []dts.SettingChange{}
	for _, s := range serverSettings() {
		if s.same(now, wanted) {
			continue
		}
		list = append(list, dts.SettingChange{Setting: s.name, From: s.text(now), To: s.text(wanted), Restart: !s.live})
		if s.live {
			s.set(&changed, wanted)
		}
	}
	return changed, list
}

func numberOr(n int) string {
	if n == 0 {
		return "default"
	}
	return strconv.Itoa(n)
}

func sizeOrNone(n int64) string {
	if n == 0 {
		return "no limit"
	}
	return size(n)
}

// exactly writes a duration that was given as one, so that two that differ are told apart.
func exactly(d time.Duration) string {
	if d >= dayLength && d%dayLength == 0 {
		return fmt.Sprintf("%dd", d/dayLength)
	}
	text := d.String() // 1h30m0s
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

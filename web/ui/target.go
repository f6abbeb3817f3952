package ui

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"dts"
)

// pair is a name and a value to show, masked where it must be.
type pair struct{ Name, Value string }

func pairs(m map[string]string) []pair {
	var list []pair
	for _, name := range slices.Sorted(maps.Keys(m)) {
		value := m[name]
		if dts.SecretName(name) {
			value = dts.Masked
		}
		list = append(list, pair{name, value})
	}
	return list
}

// targetSummary says in one line what a task runs.
func targetSummary(s dts.Spec) string { return plainOrder(summaryOf(s)) }

func summaryOf(s dts.Spec) string {
	if s.TargetType == dts.Ping {
		return "a job elsewhere reports " + pingText(s)
	}
	if s.TargetType == dts.HTTPCallback {
		t, err := s.HTTP()
		if err != nil {
			return string(s.TargetType)
		}
		return methodOf(t) + " " + dts.SafeURL(t.URL)
	}
	if s.TargetType == dts.WorkflowRun {
		return workflowText(s)
	}
	if s.TargetType == dts.Backup {
		t, err := s.Backup()
		if err != nil {
			return string(s.TargetType)
		}
		return "backup to " + t.Dir
	}
	t, err := s.Command()
	if err != nil {
		return string(s.TargetType)
	}
	return commandLine(t)
}

func methodOf(t dts.HTTPTarget) string {
	if t.Method == "" {
		return "POST"
	}
	return t.Method
}

// commandLine writes a command as one would type it.
func commandLine(t dts.CommandTarget) string {
	if t.Shell != "" {
		return t.Shell
	}
	words := make([]string, len(t.Argv))
	for i, w := range t.Argv {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote puts a word into single quotes where a shell would read more than the word.
func quote(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// targetView is what a page shows of a target.
type targetView struct {
	Words   string // what there is to say where nothing runs, or
	Command string // a command line, or
	Method  string // a request's method and
	URL     string

	Facts []pair // directory, user, shell, what is expected
	Named string // what Pairs are: "Headers" or "Environment"
	Pairs []pair
	Input string // a request's body or a command's standard input
}

func viewTarget(s dts.Spec) targetView {
	if s.TargetType == dts.Ping {
		return targetView{Words: "Runs nothing: a job elsewhere reports " + pingText(s) + "."}
	}
	if s.TargetType == dts.HTTPCallback {
		t, err := s.HTTP()
		if err != nil {
			return targetView{Command: string(s.TargetType)}
		}
		v := targetView{Method: methodOf(t), URL: dts.SafeURL(t.URL), Named: "Headers", Pairs: pairs(t.Headers), Input: t.Body}
		if len(t.ExpectStatus) > 0 {
			v.Facts = append(v.Facts, pair{"Expects status", joinInts(t.ExpectStatus)})
		}
		if t.ExpectBody != "" {
			v.Facts = append(v.Facts, pair{"Expects in the body", t.ExpectBody})
		}
		return v
	}
	if s.TargetType == dts.WorkflowRun {
		return targetView{Words: workflowText(s) + "."}
	}
	if s.TargetType == dts.Backup {
		return viewBackup(s)
	}
	t, err := s.Command()
	if err != nil {
		return targetView{Command: string(s.TargetType)}
	}
	v := targetView{Command: commandLine(t), Named: "Environment", Pairs: pairs(t.Env), Input: t.Stdin}
	for _, f := range []pair{{"Shell", t.ShellPath}, {"Directory", t.Dir}, {"User", t.User}} {
		if f.Value != "" {
			v.Facts = append(v.Facts, f)
		}
	}
	return v
}

// viewBackup is viewTarget of a copy of the database.
func viewBackup(s dts.Spec) targetView {
	t, err := s.Backup()
	if err != nil {
		return targetView{Command: string(s.TargetType)}
	}
	v := targetView{Command: "backup to " + t.Dir}
	if t.Keep > 0 {
		v.Facts = append(v.Facts, pair{"Keeps", "the newest " + strconv.Itoa(t.Keep)})
	}
	if t.KeepDays > 0 {
		v.Facts = append(v.Facts, pair{"Removes after", strconv.Itoa(t.KeepDays) + " days"})
	}
	return v
}

func joinInts(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ", ")
}

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// shells is how each shell is told to ask the program, at each word, what it can be.
var shells = map[string]string{
	"bash": `_dts() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _dts dts
`,
	// It works when zsh loads it by the name _dts, and when a shell reads it.
	"zsh": `#compdef dts
_dts() {
  local -a list
  list=("${(@f)$(${(Q)words[1]} completion zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n $list ]] && _describe -t words word list || _files
}
if [[ $funcstack[1] == _dts ]]; then _dts "$@"; else compdef _dts dts; fi
`,
	"fish": `function __dts_complete
  set -l words (commandline -opc) (commandline -ct)
  while set -q words[2]; and not string match -qr '(^|/)dts$' -- $words[1] # sudo, for one
    set -e words[1]
  end
  set -q words[2]; or return
  set -l list ($words[1] completion fish -- $words[2..-1] 2>/dev/null)
  if test (count $list) -gt 0
    printf '%s\n' $list
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c dts -f -a '(__dts_complete)'
`,
}

func (a *app) completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a script that completes words in a shell", ArgsUsage: "bash|zsh|fish [-- WORD…]", Category: "This program",
		Description: `   bash:  source <(dts completion bash)
   zsh:   source <(dts completion zsh)
   fish:  dts completion fish | source

With WORDs, those of a command line after dts, it prints what the last one can be, a line each: so the script
asks for it. Names of tasks, queues and calendars come from the server, if one answers.`,
		Action: func(c *cli.Context) error {
			const what = "shell: bash, zsh or fish"
			shell := c.Args().First()
			switch {
			case shell == "":
				return usagef("%s needs a %s", c.Command.HelpName, what)
			case shells[shell] == "":
				return usagef("%q is not known; use bash, zsh or fish", clip(clean(shell), 20))
			case len(a.loose) > 1:
				return usagef("%s takes one %s, and there are %d arguments", c.Command.HelpName, what, len(a.loose))
			case c.Args().Len() == 1:
				a.printf("%s", shells[shell])
				return nil
			}
			words := c.Args().Tail()
			if shell == "bash" { // passes them on as they are typed
				for i, w := range words {
					words[i] = strings.ReplaceAll(w, `\`, "")
				}
			}
			for _, w := range a.complete(c.App, words) {
				a.printf("%s\n", w.line(shell))
			}
			return nil
		},
	}
}

// candidate is what a word can be, and what it means.
type candidate struct{ word, meaning string }

// line is how a shell takes it.
func (w candidate) line(shell string) string {
	switch shell {
	case "zsh":
		return strings.TrimSuffix(strings.ReplaceAll(w.word, ":", `\:`)+":"+w.meaning, ":")
	case "fish":
		return w.word + "\t" + w.meaning
	}
	var b strings.Builder // bash puts it into the command line as it is
	for _, r := range w.word {
		if r < 0x7f && !strings.ContainsRune("-_./+%@,:=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// complete returns what the last of the words after dts can be. Where it returns nothing, the shell completes files.
func (a *app) complete(app *cli.App, words []string) []candidate {
	last := len(words) - 1
	current := words[last]
	var list []candidate
	add := func(word, meaning string) {
		if strings.HasPrefix(word, current) {
			list = append(list, candidate{word, clean(meaning)})
		}
	}
	commands, flags := visible(app.Commands), connectionFlags()
	path := []string{} // the command and its subcommand
	var cmd *cli.Command
	var server []string // flags of where the server is
	help := len(words) > 1 && words[0] == "help"
	arguments := 0
	for i := 0; i < last; i++ {
		switch next := find(commands, words[i]); {
		case help && i == 0:
		case words[i] == "--":
			return nil // a command of the machine, and its arguments
		case isFlag(words[i]):
			n := a.flagWords(flags, words[i:])
			if i+n > last {
				for _, name := range a.named(flagValues[strings.TrimLeft(words[i], "-")], server) {
					add(name, "")
				}
				return list
			}
			if a.known(connectionFlags(), words[i]) {
				server = append(server, words[i:i+n]...)
			}
			i += n - 1
		case next != nil && arguments == 0:
			cmd, commands, flags = next, visible(next.Subcommands), next.Flags
			path = append(path, next.Name)
		case cmd == nil:
			return nil
		default:
			arguments++
		}
	}
	addFlags := func() {
		for _, f := range flags {
			add(dashes(f.Names()[0]), flagUsage(f))
		}
		add("--help", "explain it")
	}
	if strings.HasPrefix(current, "-") && !help {
		addFlags()
		return list
	}
	if arguments == 0 {
		for _, c := range commands {
			add(c.Name, c.Usage)
		}
	}
	switch {
	case cmd == nil:
		if !help {
			add("help", "explain a command")
		}
		return list
	case help:
		return list
	case cmd.Name == "man":
		for _, c := range visible(app.Commands) {
			add(c.Name, c.Usage)
		}
		return list
	case cmd.Name == "completion":
		for _, shell := range []string{"bash", "zsh", "fish"} {
			add(shell, "")
		}
		return list
	}
	takes := synopsis(cmd, "")
	switch {
	case strings.Contains(takes, "NAME") && (path[0] == "queue" || path[0] == "calendar" || path[0] == "blackout"):
		for _, name := range a.named(path[0], server) {
			add(name, "")
		}
	case strings.Contains(takes, "NAME|ID"):
		for _, name := range a.named("task", server) {
			add(name, "")
		}
	}
	if len(list) == 0 && current == "" && !strings.Contains(takes, "FILE") {
		addFlags()
	}
	return list
}

// flagValues says of what the values of flags are names.
var flagValues = map[string]string{
	"queue": "queue", "after": "task", "calendar": "calendar", "exclude-calendar": "calendar", "require-calendar": "calendar",
}

// named asks the server for the names of things of a kind, each once: of tasks those that dts ls shows. It returns none when no
// server answers soon, because somebody has pressed a key and waits.
func (a *app) named(kind string, server []string) []string {
	type thing struct{ Name string }
	var things []thing
	switch kind {
	case "task":
		var all struct {
			RecurringTasks []thing `json:"recurring_tasks"`
			Tasks          []thing
		}
		a.ask(&all, append([]string{"ls", "--json"}, server...))
		things = append(all.RecurringTasks, all.Tasks...)
	case "queue", "calendar", "blackout":
		a.ask(&things, append([]string{kind, "ls", "--json"}, server...))
	}
	var names []string
	for _, t := range things {
		if t.Name != "" && clean(t.Name) == t.Name && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// ask runs a command of the program itself and reads the JSON that it prints. What fails, or takes too long, leaves v as it is.
func (a *app) ask(v any, args []string) {
	var out bytes.Buffer
	other := &app{in: strings.NewReader(""), out: &out, err: io.Discard, now: a.now, loc: a.loc, zone: a.zone}
	ended := make(chan int, 1)
	go func() { ended <- other.run(append([]string{"dts"}, args...)) }()
	select {
	case code := <-ended:
		if code == exitOK {
			_ = json.Unmarshal(out.Bytes(), v) // our own output
		}
	case <-time.After(2 * time.Second): // the process ends soon, and with it the question
	}
}

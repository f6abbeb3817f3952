package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

func (a *app) completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a script that completes words in a shell", ArgsUsage: "bash|zsh|fish", Category: "This program",
		Description: `   bash:  source <(dts completion bash)
   zsh:   source <(dts completion zsh)
   fish:  dts completion fish | source`,
		Action: func(c *cli.Context) error {
			shell, err := oneArg(c, "shell: bash, zsh or fish")
			if err != nil {
				return err
			}
			switch shell {
			case "bash":
				a.printf("%s", bashCompletion(c.App.VisibleCommands()))
			case "zsh":
				a.printf("%s", zshCompletion(c.App.VisibleCommands()))
			case "fish":
				a.printf("%s", fishCompletion(c.App.VisibleCommands()))
			default:
				return usagef("%q is not known; use bash, zsh or fish", clip(clean(shell), 20))
			}
			return nil
		},
	}
}

// longFlags returns the names of a command's flags, with their dashes.
func longFlags(cmd *cli.Command) []string {
	var list []string
	for _, f := range cmd.VisibleFlags() {
		list = append(list, dashes(f.Names()[0]))
	}
	for _, sub := range cmd.VisibleCommands() {
		list = append(list, sub.Name)
	}
	return append(list, "--help")
}

// bashCompletion completes the command, then its subcommand and its flags, then files.
func bashCompletion(commands []*cli.Command) string {
	var b strings.Builder
	names := make([]string, 0, len(commands))
	b.WriteString("_dts() {\n  local cur=\"${COMP_WORDS[COMP_CWORD]}\" list=\"\"\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n")
	for _, c := range commands {
		names = append(names, c.Name)
	}
	b.WriteString("    list=\"" + strings.Join(names, " ") + "\"\n  else\n    case \"${COMP_WORDS[1]}\" in\n")
	for _, c := range commands {
		b.WriteString("      " + c.Name + ") list=\"" + strings.Join(longFlags(c), " ") + "\" ;;\n")
	}
	b.WriteString("    esac\n  fi\n  if [ \"$COMP_CWORD\" -gt 2 ]; then\n    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n")
	for _, c := range commands {
		for _, sub := range c.VisibleCommands() {
			b.WriteString("      \"" + c.Name + " " + sub.Name + "\") list=\"" + strings.Join(longFlags(sub), " ") + "\" ;;\n")
		}
	}
	b.WriteString("    esac\n  fi\n  COMPREPLY=($(compgen -W \"$list\" -- \"$cur\"))\n}\ncomplete -o default -F _dts dts\n")
	return b.String()
}

// zshCompletion does the same with what each word means beside it. It works when zsh loads it by the name _dts, and when a
// shell reads it.
func zshCompletion(commands []*cli.Command) string {
	var b strings.Builder
	b.WriteString("#compdef dts\n_dts() {\n  local -a list\n  if (( CURRENT == 2 )); then\n    list=(\n")
	for _, c := range commands {
		b.WriteString("      " + zshWord(c.Name, c.Usage) + "\n")
	}
	b.WriteString("    )\n    _describe -t commands command list\n    return\n  fi\n  case \"$words[2] $words[3]\" in\n")
	for _, c := range commands {
		for _, sub := range c.VisibleCommands() {
			zshCase(&b, "'"+c.Name+" "+sub.Name+"'", sub)
		}
	}
	b.WriteString("  esac\n  (( $#list && CURRENT > 3 )) || case $words[2] in\n")
	for _, c := range commands {
		zshCase(&b, c.Name, c)
	}
	b.WriteString("  esac\n  _describe -t options option list || _files\n}\n")
	b.WriteString("if [[ $funcstack[1] == _dts ]]; then _dts \"$@\"; else compdef _dts dts; fi\n")
	return b.String()
}

// zshCase lists what may follow a command: its subcommands and flags.
func zshCase(b *strings.Builder, pattern string, c *cli.Command) {
	b.WriteString("    " + pattern + ") list=(\n")
	for _, sub := range c.VisibleCommands() {
		b.WriteString("      " + zshWord(sub.Name, sub.Usage) + "\n")
	}
	for _, f := range c.VisibleFlags() {
		b.WriteString("      " + zshWord(dashes(f.Names()[0]), flagUsage(f)) + "\n")
	}
	b.WriteString("      " + zshWord("--help", "explain it") + "\n    ) ;;\n")
}

// zshWord quotes a word and its meaning for _describe.
func zshWord(word, meaning string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(word, ":", `\:`)+":"+meaning, "'", `'\''`) + "'"
}

func fishCompletion(commands []*cli.Command) string {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	var b strings.Builder
	for _, c := range commands {
		b.WriteString("complete -c dts -n __fish_use_subcommand -a " + c.Name + " -d '" + quote.Replace(c.Usage) + "'\n")
		fishFlags(&b, c, "__fish_seen_subcommand_from "+c.Name)
		for _, sub := range c.VisibleCommands() {
			b.WriteString("complete -c dts -n '__fish_seen_subcommand_from " + c.Name + "' -a " + sub.Name + " -d '" + quote.Replace(sub.Usage) + "'\n")
			fishFlags(&b, sub, "__fish_seen_subcommand_from "+c.Name+"; and __fish_seen_subcommand_from "+sub.Name)
		}
	}
	return b.String()
}

// fishFlags completes the flags of a command where a condition holds.
func fishFlags(b *strings.Builder, c *cli.Command, when string) {
	for _, f := range longFlags(c) {
		if name, ok := strings.CutPrefix(f, "--"); ok {
			b.WriteString("complete -c dts -n '" + when + "' -l " + name + "\n")
		}
	}
}

package main

const about = `The server (dts serve) keeps tasks in a directory and runs them. The other commands talk to it
through a socket in that directory, which only its user may use, or over the network with --server URL and
a token. Every command explains itself with --help.

What can be said with a flag can also be said with an environment variable or in a TOML file; the flag comes
first, then the variable, then the file.

Exit codes:
  0  done
  1  it failed, there is no such thing, or its state does not allow it
  2  bad input
  3  no server answers`

const appHelp = `{{.Name}} {{.Usage}}

Usage:
   {{.UsageText}}

{{.Description}}

Commands:{{range .VisibleCategories}}
   {{.Name}}{{range .VisibleCommands}}
     {{join .Names ", " | printf "%-12s"}}{{.Usage}}{{end}}
{{end}}
   dts --version prints the version.
`

const commandHelp = `{{.HelpName}}: {{.Usage}}

Usage:
   {{if .UsageText}}{{.UsageText}}{{else}}{{.HelpName}}{{if .VisibleFlags}} [options]{{end}}{{if .VisibleCommands}} COMMAND{{end}} {{.ArgsUsage}}{{end}}
{{if .Description}}
{{.Description}}
{{end}}{{if .VisibleCommands}}
Commands:{{range .VisibleCommands}}
   {{join .Names ", " | printf "%-12s"}}{{.Usage}}{{end}}
{{end}}{{range .VisibleFlagCategories}}
{{if .Name}}{{.Name}}{{else}}Options{{end}}:{{range .Flags}}
   {{.}}{{end}}
{{end}}`

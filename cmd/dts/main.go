// Command dts is the server, and the command line that talks to it.
//
// It promises that exit codes can be relied on (0 done, 1 failed or refused by the state of things, 2 bad
// input, 3 no server), that a refusal is one line on standard error that says what would be right, and that
// with --json standard output holds JSON only. This is the one package that wires the others together.
package main

import "os"

func main() {
	if os.Getpid() == 1 {
		os.Exit(runAsProcess1())
	}
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

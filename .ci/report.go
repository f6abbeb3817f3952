//go:build ignore

// Report reads the output of `go test -json`, prints what failed and one line for each package, and writes
// "PASSED FAILED", the numbers of test cases, into the file that it is given. It fails when a package did.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Output     string
	Elapsed    float64
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | go run report.go FILE")
		os.Exit(2)
	}
	var passed, failed, skipped, lines int
	bad := false
	failures := map[string]int{}     // failed test cases by package
	output := map[[2]string]string{} // what each running test case has printed
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil || e.Action == "" {
			fmt.Println(in.Text()) // from make, or from the go command itself
			continue
		}
		lines++
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "output":
			output[key] += e.Output
			continue
		case "build-output":
			fmt.Print(e.Output)
			continue
		case "pass", "fail", "skip":
		default:
			continue
		}
		switch {
		case e.Test == "" && e.Action == "fail":
			bad = true
			if failures[e.Package] == 0 { // it did not build, or died outside of a test case
				failed++
				for k, text := range output {
					if k[0] == e.Package {
						fmt.Print(text)
					}
				}
			}
			fmt.Printf("FAIL  %s  %.1f s\n", e.Package, e.Elapsed)
		case e.Test == "" && e.Action == "pass":
			fmt.Printf("ok    %s  %.1f s\n", e.Package, e.Elapsed)
		case e.Test == "": // no tests
		case e.Action == "fail":
			failed++
			failures[e.Package]++
			fmt.Print(output[key])
		case e.Action == "skip":
			skipped++
			fmt.Print(output[key])
		default:
			passed++
		}
		delete(output, key)
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "read the test output:", err)
		bad = true
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if err := os.WriteFile(os.Args[1], fmt.Appendf(nil, "%d %d\n", passed, failed), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		bad = true
	}
	if bad || lines == 0 {
		os.Exit(1)
	}
}

// Package clitest tests the dts program from outside: it builds it and runs the scripts in testdata/cli.
package clitest

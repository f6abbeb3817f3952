// Package exec runs the targets of tasks: HTTP callbacks and commands. It makes one attempt at a time and
// reports what became of it; it knows nothing of schedules, retries or the store.
//
// What it promises:
//
//   - Run ends no later than the task's timeout, plus the time that a command is given to end after SIGTERM
//     and that a process in the background is given to let go of the output (see Options). Only a command
//     that hangs inside the kernel, on a dead network file system for example, takes longer: it cannot be killed.
//   - Memory per attempt is bounded, however much a server sends or a command prints.
//   - An attempt of an AT_MOST_ONCE task sends its request once. An attempt of an AT_LEAST_ONCE task sends a
//     request whose method is not idempotent once, too.
//   - When a command is cancelled or takes too long, its process group ends with it, and on Linux so do the
//     processes that have left the group but still carry the attempt's mark in their environment.
//   - KillOrphans finds by the same mark what a server that was killed left behind.
//   - No text that Run reports holds a password, the query of a URL or a header.
//
// DESIGN.md beside this file says why it is built so.
package exec

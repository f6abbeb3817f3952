package sched

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"dts"
)

// inputs reads what a task gets of the output of others. What is wrong with it is the outcome of the attempt; nil: nothing.
func (s *Scheduler) inputs(r *run) (map[string]string, *dts.Outcome) {
	t := r.task
	if len(t.Inputs) == 0 {
		return nil, nil
	}
	no := func(again bool, format string, args ...any) (map[string]string, *dts.Outcome) {
		return nil, &dts.Outcome{State: dts.AttemptFailed, Retryable: again, Error: fmt.Sprintf(format, args...)}
	}
	list, err := s.o.Store.Inputs(r.ctx, t, dts.MaxInputBytes)
	if err != nil {
		s.logStore("read inputs", err)
		return no(true, "its inputs could not be read")
	}
	in := make(map[string]string, len(t.Inputs))
	for _, x := range list {
		if _, twice := in[x.Name]; twice {
			return no(false, "the input %q is ambiguous: it depends on several tasks of that name", x.Name)
		}
		head := bytes.TrimRight(x.Output.Head, "\r\n")
		switch {
		case x.Output.Total > dts.MaxInputBytes:
			return no(false, "the input %q is %d bytes long; at most %d are passed on: let it print less, or where its output is", x.Name, x.Output.Total, dts.MaxInputBytes)
		case bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(head):
			return no(false, "the input %q is not text: it is not UTF-8, or holds a NUL byte", x.Name)
		}
		in[x.Name] = string(head)
	}
	for _, name := range t.Inputs {
		if _, is := in[name]; is {
			continue
		}
		if t.WorkflowID != "" {
			return no(false, "the input %q is missing: that step was deleted", name)
		}
		return no(false, "the input %q is missing: it does not depend on a task of that name", name)
	}
	return in, nil
}

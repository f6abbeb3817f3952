package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"
	"sync"
)

// profileVariable names the file for a CPU profile of `dts serve`. Only `dts bench` sets it, for the server that
// it measures; the lines profileStart and profileStop on the server's standard input then begin and end the
// profile, so that it holds what was measured and nothing else.
const (
	profileVariable = "DTS_BENCH_CPUPROFILE"
	profileStart    = "start\n"
	profileStop     = "stop\n"
)

// profileOnOrder obeys the lines that come from in, where profileVariable is set. The function that it returns
// ends a profile that is being made.
func profileOnOrder(in io.Reader, log *slog.Logger) (end func()) {
	path := os.Getenv(profileVariable)
	if path == "" {
		return func() {}
	}
	p := &serverProfile{path: path}
	go func() { // ends with its input, at the latest with the process
		for r := bufio.NewReader(in); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if line == profileStart {
				err = p.start()
			} else {
				err = p.stop()
			}
			if err != nil {
				log.Error("the CPU profile", "err", err)
			}
		}
	}()
	return func() {
		if err := p.stop(); err != nil {
			log.Error("the CPU profile", "err", err)
		}
	}
}

// serverProfile is a CPU profile of this process, made in parts: the last part stays in the file.
type serverProfile struct {
	path string
	mu   sync.Mutex
	file *os.File // nil: no profile is being made
}

func (p *serverProfile) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		return nil
	}
	f, err := os.Create(p.path)
	if err != nil {
		return fmt.Errorf("write it: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return fmt.Errorf("start it: %w", err)
	}
	p.file = f
	return nil
}

func (p *serverProfile) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return nil
	}
	pprof.StopCPUProfile()
	err := p.file.Close()
	p.file = nil
	if err != nil {
		return fmt.Errorf("write it: %w", err)
	}
	return nil
}

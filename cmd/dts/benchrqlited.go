package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// findRqlited returns the path of rqlited: the one that is given, or that in .cache, where make rqlited puts it, or
// the one on the PATH.
func findRqlited(given string) (string, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err == nil {
			_, err = exec.LookPath(path)
		}
		if err != nil {
			return "", usagef("--rqlited: %s", err)
		}
		return path, nil
	}
	const built = ".cache/rqlited"
	if path, err := filepath.Abs(built); err == nil {
		if _, err := exec.LookPath(path); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath("rqlited"); err == nil {
		return path, nil
	}
	return "", usagef("there is no rqlited, neither as %s nor on the PATH; run make rqlited, or give --rqlited PATH", built)
}

// rqlited is a cluster of rqlite nodes on loopback.
type rqlited struct {
	nodes []*rqlitedNode
	http  *http.Client
}

type rqlitedNode struct {
	address string // host:port, for HTTP
	cmd     *exec.Cmd
	ended   chan struct{}
	log     bytes.Buffer // read it after ended only
}

// rqlitedLimit is how long a cluster may take to be ready, and a node to stop.
const rqlitedLimit = 30 * time.Second

// startRqlited starts a cluster with its data in dir, and waits until it has a leader and every node is in it.
func startRqlited(ctx context.Context, binary, dir string, nodes int) (r *rqlited, err error) {
	r = &rqlited{http: &http.Client{Timeout: rawTimeout, Transport: &http.Transport{}}}
	defer func() {
		if err != nil {
			r.stop()
			err = fmt.Errorf("start rqlited: %w%s", err, r.logs())
		}
	}()
	addresses := make([]string, 2*nodes)
	for i := range addresses {
		if addresses[i], err = freeAddress(); err != nil {
			return r, err
		}
	}
	raft := addresses[nodes:]
	for i := range nodes {
		n := &rqlitedNode{address: addresses[i], ended: make(chan struct{})}
		data := filepath.Join(dir, fmt.Sprintf("rqlited-%d", i+1))
		if err := os.MkdirAll(data, 0o700); err != nil {
			return r, err
		}
		args := []string{"-node-id", fmt.Sprint(i + 1), "-http-addr", n.address, "-raft-addr", raft[i]}
		if nodes > 1 {
			args = append(args, "-bootstrap-expect", fmt.Sprint(nodes), "-join", strings.Join(raft, ","))
		}
		n.cmd = exec.Command(binary, append(args, data)...)
		n.cmd.Stdout, n.cmd.Stderr, n.cmd.WaitDelay = &n.log, &n.log, time.Second
		if err := n.cmd.Start(); err != nil {
			return r, err
		}
		r.nodes = append(r.nodes, n)
		go func() {
			defer close(n.ended)
			n.cmd.Wait() // it is ended by a signal
		}()
	}
	return r, poll(ctx, rqlitedLimit, func() (bool, string, error) {
		for _, n := range r.nodes {
			select {
			case <-n.ended:
				return false, "", errors.New("it has ended")
			default:
			}
			if members, err := r.members(ctx, n.address); err != nil || len(members) != nodes {
				return false, fmt.Sprintf("%d of %d nodes found each other", len(members), nodes), nil
			}
		}
		leader, err := r.leader(ctx)
		return err == nil && leader != "", "there was no leader", nil
	})
}

// urls are the addresses for dts.
func (r *rqlited) urls() []string {
	list := make([]string, len(r.nodes))
	for i, n := range r.nodes {
		list[i] = "http://" + n.address
	}
	return list
}

// rqlitedMember is what a node says of one of the cluster.
type rqlitedMember struct {
	Address string `json:"api_addr"`
	Leader  bool   `json:"leader"`
}

func (r *rqlited) members(ctx context.Context, address string) ([]rqlitedMember, error) {
	var answer struct{ Nodes []rqlitedMember }
	err := r.ask(ctx, http.MethodGet, "http://"+address+"/nodes?ver=2", nil, &answer)
	return answer.Nodes, err
}

// leader returns the address of the leader.
func (r *rqlited) leader(ctx context.Context) (string, error) {
	list, err := r.members(ctx, r.nodes[0].address)
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if m.Leader {
			return strings.TrimPrefix(m.Address, "http://"), nil
		}
	}
	return "", errors.New("rqlite has no leader")
}

// ask sends a request, with a body or nil, and reads the answer into out.
func (r *rqlited) ask(ctx context.Context, method, url string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("rqlite answers %s: %s", resp.Status, clip(string(answer), 300))
	}
	return json.Unmarshal(answer, out)
}

// query sends statements to the leader and returns the number that they answer with; 0 of none.
func (r *rqlited) query(ctx context.Context, path string, statements [][]any) (int, error) {
	leader, err := r.leader(ctx)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(statements)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Error   string
		Results []struct {
			Error  string
			Values [][]int
		}
	}
	if err := r.ask(ctx, http.MethodPost, "http://"+leader+path, body, &answer); err != nil {
		return 0, err
	}
	n := 0
	for _, result := range answer.Results {
		if answer.Error += result.Error; len(result.Values) > 0 {
			n = result.Values[0][0]
		}
	}
	if answer.Error != "" {
		return 0, errors.New("rqlite answers: " + answer.Error)
	}
	return n, nil
}

// stop ends all nodes and waits for that.
func (r *rqlited) stop() {
	r.http.CloseIdleConnections()
	for _, n := range r.nodes {
		n.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, n := range r.nodes {
		select {
		case <-n.ended:
		case <-time.After(rqlitedLimit):
			n.cmd.Process.Kill()
			<-n.ended
		}
	}
}

// logs are the last words of the nodes, which have stopped.
func (r *rqlited) logs() string {
	var b strings.Builder
	for _, n := range r.nodes {
		text := n.log.String()
		fmt.Fprintf(&b, "\n%s", text[max(0, len(text)-1000):])
	}
	return b.String()
}

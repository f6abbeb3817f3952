package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dts/store/rqlite/rqlitetest"
)

// rqliteNode runs one node of rqlite on one data directory, again and again. Other processes reach it through
// the network, this test directly.
type rqliteNode struct {
	t                  *testing.T
	name               string
	bin, data, logPath string
	http, raft         string // addresses at which it listens
	httpFront          string // the same through the network
	raftFront          string
	join               string // the raft addresses of all

	process *os.Process
	exited  chan struct{} // closed when the process has ended
}

// newRqlite prepares three nodes; nothing runs yet. What is left of them when the test ends is killed.
func newRqlite(t *testing.T, n *network) []*rqliteNode {
	t.Helper()
	bin := rqlitetest.Binary(t)
	var nodes []*rqliteNode
	var rafts []string
	for i := range 3 {
		dir := t.TempDir()
		r := &rqliteNode{
			t: t, name: fmt.Sprintf("r%d", i+1), bin: bin, data: filepath.Join(dir, "data"), logPath: filepath.Join(dir, "log"),
			http: freeAddress(t), raft: freeAddress(t),
		}
		r.httpFront, r.raftFront = n.front(r.name, r.http), n.front(r.name, r.raft)
		nodes, rafts = append(nodes, r), append(rafts, r.raftFront)
	}
	for _, r := range nodes {
		r.join = strings.Join(rafts, ",")
	}
	t.Cleanup(func() {
		for _, r := range nodes {
			if r.process != nil {
				r.process.Kill()
				<-r.exited
			}
			if b, err := os.ReadFile(r.logPath); err == nil && t.Failed() {
				t.Logf("the end of %s's log:\n%s", r.name, b[max(0, len(b)-2000):])
			}
		}
	})
	return nodes
}

// launch starts a process.
func (r *rqliteNode) launch(n *network) {
	r.t.Helper()
	log, err := os.OpenFile(r.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(r.bin, "-node-id", r.name, "-http-addr", r.http, "-http-adv-addr", r.httpFront,
		"-raft-addr", r.raft, "-raft-adv-addr", r.raftFront, "-bootstrap-expect", "3", "-join", r.join, r.data)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	exited := make(chan struct{})
	r.process, r.exited = cmd.Process, exited
	n.runs(r.name, cmd.Process.Pid)
	go func() {
		cmd.Wait()
		close(exited)
	}()
}

// end sends a signal and waits for the end of the process; hung means that it had to be killed after 20 s. A rqlited
// without a majority may be slow to end.
func (r *rqliteNode) end(s syscall.Signal) (hung bool) {
	r.process.Signal(s)
	select {
	case <-r.exited:
	case <-time.After(20 * time.Second):
		hung = true
		r.process.Kill()
		<-r.exited
	}
	return hung
}

// rqliteStatus is what the test needs of a node's /status.
type rqliteStatus struct {
	Store struct {
		Leader struct {
			NodeID string `json:"node_id"`
		} `json:"leader"`
		Raft struct {
			State        string `json:"state"`
			AppliedIndex uint64 `json:"applied_index"`
			CommitIndex  uint64 `json:"commit_index"`
			Term         uint64 `json:"term"`
		} `json:"raft"`
	} `json:"store"`
}

// direct talks to rqlite past the network.
var direct = &http.Client{Timeout: 5 * time.Second}

func (r *rqliteNode) status() (s rqliteStatus, err error) {
	b, err := r.get("/status")
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	return s, err
}

func (r *rqliteNode) get(path string) ([]byte, error) {
	resp, err := direct.Get("http://" + r.http + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", r.name+path, resp.Status, b)
	}
	return b, err
}

// query reads rows: with the level none as this node has them, with weak as the leader has them.
func (r *rqliteNode) query(level, sql string) ([][]any, error) {
	b, err := r.get("/db/query?level=" + level + "&q=" + url.QueryEscape(sql))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Results []struct {
			Values [][]any `json:"values"`
			Error  string  `json:"error"`
		} `json:"results"`
	}
	if err := json.Unmarshal(b, &answer); err != nil || len(answer.Results) != 1 {
		return nil, fmt.Errorf("%s answers %s: %w", r.name, b, err)
	}
	if e := answer.Results[0].Error; e != "" {
		return nil, fmt.Errorf("%s: %s: %s", r.name, sql, e)
	}
	return answer.Results[0].Values, nil
}

// ready reports whether the node knows a leader and answers.
func (r *rqliteNode) ready() bool {
	_, err := r.get("/readyz")
	return err == nil
}

// leader returns the node that a majority follows; nil when none is known.
func leader(nodes []*rqliteNode) *rqliteNode {
	var found *rqliteNode
	var term uint64
	for _, r := range nodes {
		if s, err := r.status(); err == nil && s.Store.Raft.State == "Leader" && s.Store.Raft.Term > term {
			found, term = r, s.Store.Raft.Term
		}
	}
	return found
}

// awaitEqual waits until every node has applied all that is committed.
func awaitEqual(t *testing.T, nodes []*rqliteNode) {
	t.Helper()
	eventually(t, 60*time.Second, "the replicas to have applied the same", func() bool {
		time.Sleep(50 * time.Millisecond)
		var first uint64
		for i, r := range nodes {
			s, err := r.status()
			if err != nil || s.Store.Raft.AppliedIndex != s.Store.Raft.CommitIndex {
				return false
			}
			if i == 0 {
				first = s.Store.Raft.AppliedIndex
			}
			if s.Store.Raft.AppliedIndex != first {
				return false
			}
		}
		return true
	})
}

// saveDatabase writes the node's database, as the node itself has it, into a file.
func (r *rqliteNode) saveDatabase(path string) error {
	b, err := r.get("/db/backup?noleader")
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

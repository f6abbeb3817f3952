// Package rqlitetest runs real rqlite clusters on loopback for tests: it starts and stops nodes, kills and pauses
// them, and says which of them leads. It promises that a cluster consists of its own nodes only, on ports that were
// free, and that no process outlives the test.
//
//	c := rqlitetest.Start(t, rqlitetest.Options{Nodes: 3})
//	db, err := rqlite.Open(ctx, rqlite.Options{URLs: c.URLs(), …})
//	leader := c.Leader()
//	leader.Kill()
//	c.Leader() // waits for the next one
//	leader.Start()
package rqlitetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startTimeout is how long a cluster may take to elect a leader, on a busy machine.
const startTimeout = 60 * time.Second

// Options of a cluster. The zero value is one node.
type Options struct {
	Nodes int // 1 when zero
	// Args are more arguments for each rqlited, before its data directory.
	Args []string
	// HTTPS says that Args make the nodes speak HTTPS; Client then trusts their certificate.
	HTTPS  bool
	Client *http.Client // http.DefaultClient when nil
	// User and Password, if any, are what the nodes ask for according to Args.
	User, Password string
}

// Cluster is a running cluster. Its methods fail the test when something goes wrong; use them from one goroutine.
type Cluster struct {
	t     testing.TB
	o     Options
	nodes []*Node
	procs *starter
}

// Node is one rqlited of a cluster.
type Node struct {
	c    *Cluster
	id   string
	http string // host:port
	raft string
	dir  string
	args []string

	cmd    *exec.Cmd // nil when it does not run
	ended  chan struct{}
	paused bool
	log    bytes.Buffer // of the last start; read it after ended only
}

// Binary returns the path of rqlited: DTS_RQLITED, or .cache/rqlited in the repository, where make rqlited puts it, or the
// one on the PATH. Without any the test is skipped, or fails where DTS_REQUIRE_RQLITE=1 is set.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("DTS_RQLITED"); path != "" {
		return path
	}
	if dir, err := os.Getwd(); err == nil {
		for ; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				path := filepath.Join(dir, ".cache", "rqlited")
				if _, err := os.Stat(path); err == nil {
					return path
				}
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if path, err := exec.LookPath("rqlited"); err == nil {
		return path
	}
	if os.Getenv("DTS_REQUIRE_RQLITE") == "1" {
		t.Fatal("DTS_REQUIRE_RQLITE=1 is set and there is no rqlited; run make rqlited")
	}
	t.Skip("SKIPPED: NOTHING IS TESTED WITH RQLITE, because there is no rqlited. Build it with make rqlited; DTS_REQUIRE_RQLITE=1 makes this a failure.")
	return ""
}

// Start starts a cluster and waits until it has a leader and all of its nodes. It ends with the test.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	binary := Binary(t)
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	c := &Cluster{t: t, o: o, procs: newStarter()}
	t.Cleanup(c.end)
	addresses := freeAddresses(t, 2*o.Nodes)
	var join []string
	for i := range o.Nodes {
		join = append(join, addresses[2*i+1])
	}
	for i := range o.Nodes {
		n := &Node{c: c, id: fmt.Sprintf("n%d", i+1), http: addresses[2*i], raft: addresses[2*i+1], dir: t.TempDir()}
		n.args = append([]string{binary, "-node-id", n.id, "-http-addr", n.http, "-raft-addr", n.raft}, o.Args...)
		if o.Nodes > 1 {
			n.args = append(n.args, "-bootstrap-expect", fmt.Sprint(o.Nodes), "-join", strings.Join(join, ","))
		} else {
			// Nobody can disagree, so the election need not take a second.
			n.args = append(n.args, "-raft-timeout", "100ms", "-raft-election-timeout", "100ms", "-raft-leader-lease-timeout", "100ms")
		}
		n.args = append(n.args, n.dir)
		c.nodes = append(c.nodes, n)
		n.Start()
	}
	c.Leader()
	c.waitMembers()
	return c
}

// freeAddresses returns addresses on loopback that were free a moment ago, all different.
func freeAddresses(t testing.TB, n int) []string {
	t.Helper()
	var list []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all are held until the last is found
		list = append(list, l.Addr().String())
	}
	return list
}

// Nodes returns all nodes, running or not.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// URLs returns the addresses of all nodes, with the user and password if there are.
func (c *Cluster) URLs() []string {
	var list []string
	for _, n := range c.nodes {
		list = append(list, n.URL())
	}
	return list
}

// Leader returns the node that leads. It waits for an election, up to a minute.
func (c *Cluster) Leader() *Node {
	c.t.Helper()
	var last error
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, n := range c.nodes {
			leads, err := n.leads()
			if leads {
				return n
			}
			last = cmp.Or(err, last)
		}
	}
	c.t.Fatalf("the rqlite cluster has had no leader for %v; the last error: %v\n%s", startTimeout, last, c.logs())
	return nil
}

// Followers returns the running nodes that do not lead.
func (c *Cluster) Followers() []*Node {
	c.t.Helper()
	leader := c.Leader()
	var list []*Node
	for _, n := range c.nodes {
		if n != leader && n.Running() {
			list = append(list, n)
		}
	}
	return list
}

// waitMembers waits until the cluster has its nodes, and fails the test when it has others.
func (c *Cluster) waitMembers() {
	c.t.Helper()
	var got map[string]json.RawMessage
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		body, _, err := c.nodes[0].get("/nodes")
		if err != nil {
			continue
		}
		got = nil
		if err := json.Unmarshal(body, &got); err != nil {
			c.t.Fatalf("read the nodes of the cluster: %v: %s", err, body)
		}
		for id := range got {
			if !strings.HasPrefix(id, "n") || len(got) > len(c.nodes) {
				c.t.Fatalf("a strange node %s is in the cluster; is an old rqlited still running?", id)
			}
		}
		if len(got) == len(c.nodes) {
			return
		}
	}
	c.t.Fatalf("the rqlite cluster has %d nodes after %v, want %d\n%s", len(got), startTimeout, len(c.nodes), c.logs())
}

// end kills what runs.
func (c *Cluster) end() {
	for _, n := range c.nodes {
		n.Kill()
	}
	c.procs.end()
	if c.t.Failed() {
		c.t.Log(c.logs())
	}
}

// logs are the last lines that each node has printed, of those that do not run.
func (c *Cluster) logs() string {
	var b strings.Builder
	for _, n := range c.nodes {
		text := "it is running"
		if !n.Running() {
			text = n.log.String()
			text = text[max(0, len(text)-4000):]
		}
		fmt.Fprintf(&b, "--- rqlited %s (%s)\n%s\n", n.id, n.http, text)
	}
	return b.String()
}

// URL is the node's address, with the user and password if there are.
func (n *Node) URL() string {
	scheme, user := "http", ""
	if n.c.o.HTTPS {
		scheme = "https"
	}
	if n.c.o.User != "" {
		user = url.UserPassword(n.c.o.User, n.c.o.Password).String() + "@"
	}
	return scheme + "://" + user + n.http
}

// Address is the node's host and port for HTTP.
func (n *Node) Address() string { return n.http }

// Dir is the node's data directory.
func (n *Node) Dir() string { return n.dir }

// Running reports whether the node's process is there, paused or not.
func (n *Node) Running() bool { return n.cmd != nil }

// Start starts the node, again after a Kill. It does not wait until the node answers: see WaitReady.
func (n *Node) Start() {
	n.c.t.Helper()
	if n.cmd != nil {
		return
	}
	n.log.Reset()
	cmd := exec.Command(n.args[0], n.args[1:]...)
	cmd.Stdout, cmd.Stderr = &n.log, &n.log
	cmd.WaitDelay = time.Second
	if err := n.c.procs.start(cmd); err != nil {
		n.c.t.Fatalf("start rqlited: %v", err)
	}
	n.cmd, n.ended, n.paused = cmd, make(chan struct{}), false
	go func(ended chan struct{}) {
		cmd.Wait() // it ends by a kill, which is no news
		close(ended)
	}(n.ended)
}

// WaitReady waits until the node answers and knows a leader.
func (n *Node) WaitReady() {
	n.c.t.Helper()
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, _, err := n.get("/readyz"); err == nil {
			return
		}
	}
	n.c.t.Fatalf("rqlited %s is not ready after %v\n%s", n.id, startTimeout, n.c.logs())
}

// Kill kills the node as kill -9 does, and waits until it is gone.
func (n *Node) Kill() { n.stop(syscall.SIGKILL) }

// Terminate asks the node to stop in good order, and waits until it is gone.
func (n *Node) Terminate() { n.stop(syscall.SIGTERM) }

func (n *Node) stop(s syscall.Signal) {
	if n.cmd == nil {
		return
	}
	n.Continue()
	n.signal(s)
	select {
	case <-n.ended:
	case <-time.After(startTimeout):
		n.signal(syscall.SIGKILL)
		<-n.ended
	}
	n.cmd = nil
}

// Pause stops the node as SIGSTOP does: its connections stay open, and it says nothing.
func (n *Node) Pause() {
	if n.cmd != nil && !n.paused {
		n.paused = true
		n.signal(syscall.SIGSTOP)
		n.stopped()
	}
}

// stopped waits until the process has stopped: a signal is on its way for some time. Where the system does not tell,
// that time is given.
func (n *Node) stopped() {
	for range 100 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
		if _, state, ok := strings.Cut(string(stat), ") "); err == nil && ok && strings.HasPrefix(state, "T") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Continue ends a Pause.
func (n *Node) Continue() {
	if n.cmd != nil && n.paused {
		n.paused = false
		n.signal(syscall.SIGCONT)
	}
}

// signal sends a signal; a process that has ended by itself gets none.
func (n *Node) signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s) }

// leads reports whether the node leads: it answers what only the leader can without passing it on.
func (n *Node) leads() (bool, error) {
	if n.cmd == nil || n.paused {
		return false, nil
	}
	body, header, err := n.getWithin(500*time.Millisecond, "/db/query?level=weak&q=SELECT+1") // it may ask a paused leader
	return err == nil && header.Get("X-Rqlite-Served-By") == "" && !bytes.Contains(body, []byte(`"error"`)), err
}

func (n *Node) get(path string) ([]byte, http.Header, error) { return n.getWithin(2*time.Second, path) }

func (n *Node) getWithin(limit time.Duration, path string) ([]byte, http.Header, error) {
	client := *n.c.o.Client
	client.Timeout = limit
	resp, err := client.Get(n.URL() + path)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s: %s", resp.Status, &b)
	}
	return b.Bytes(), resp.Header, nil
}

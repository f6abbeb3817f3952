package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dts/web/client"
)

// dtsNode is one dts of a cluster.
type dtsNode struct {
	*testServer
	name  string
	busy  sync.Mutex  // held by whoever does something to the process
	away  atomic.Bool // it does not answer: stopped, ended, or not ready yet
	ready atomic.Bool // the newest process got ready
	ended atomic.Bool // it was told to end
}

// newNodes prepares three servers on one cluster of rqlite; nothing runs yet.
func newNodes(t *testing.T, bin string, n *network, stores []*rqliteNode) []*dtsNode {
	t.Helper()
	var urls []string
	for _, r := range stores {
		urls = append(urls, "http://"+r.httpFront)
	}
	var nodes []*dtsNode
	for _, name := range []string{"d1", "d2", "d3"} {
		listen := freeAddress(t)
		front := n.front(name, listen)
		s := newServer(t, bin, filepath.Join(t.TempDir(), "data"), "--rqlite", strings.Join(urls, ","), "--advertise", "http://"+front)
		s.listen = listen
		api, err := client.New(client.Options{Socket: filepath.Join(s.data, "dts.sock"), Version: "test", Timeout: 15 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(api.Close)
		s.api = api
		nodes = append(nodes, &dtsNode{testServer: s, name: name})
	}
	return nodes
}

// awaitReadyOrEnd waits until the newest process is ready; false means that it has ended, or is not ready in time.
func (d *dtsNode) awaitReadyOrEnd(limit time.Duration) bool {
	exited := d.exited
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		select {
		case <-exited:
			return false
		default:
		}
		if r, err := d.api.Ready(d.t.Context()); err == nil && r.Ready {
			d.away.Store(false)
			d.ready.Store(true)
			return true
		}
	}
	return false
}

// end kills the process, or lets it end by a signal; code is its exit code.
func (d *dtsNode) end(s syscall.Signal) (took time.Duration, code int) {
	d.ended.Store(true)
	d.away.Store(true)
	begun := time.Now()
	d.process.Signal(s)
	select {
	case <-d.exited:
	case <-time.After(60 * time.Second):
		d.t.Errorf("%s did not end within a minute of %s", d.name, s)
		d.process.Signal(syscall.SIGQUIT)
		<-d.exited
	}
	return time.Since(begun), d.state.ExitCode()
}

// id is the server's name in the tables.
func (d *dtsNode) id() string {
	b, err := os.ReadFile(filepath.Join(d.data, "node-id"))
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

package main_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// network is what lies between the processes of a cluster: every connection from one to another goes through a
// proxy in this process, which can be told to break connections, or to keep back what is sent. A process is
// reached under one address by all others, so who has opened a connection is read from /proc.
type network struct {
	t *testing.T

	mu     sync.Mutex
	moved  *sync.Cond         // something below has changed
	pids   map[string]int     // of the running processes, by name
	mute   map[[2]string]bool // from, to: what is sent this way waits
	cut    map[[2]string]bool // from, to: connections opened this way break
	open   map[*wire]bool
	fronts []net.Listener
	closed bool
	tasks  sync.WaitGroup
}

// wire is one connection through the network.
type wire struct {
	from, to string
	in, out  net.Conn // in was opened by from, out goes on to to
}

func newNetwork(t *testing.T) *network {
	n := &network{t: t, pids: map[string]int{}, mute: map[[2]string]bool{}, cut: map[[2]string]bool{}, open: map[*wire]bool{}}
	n.moved = sync.NewCond(&n.mu)
	t.Cleanup(n.close)
	return n
}

func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	for _, l := range n.fronts {
		l.Close()
	}
	for w := range n.open {
		w.close()
	}
	n.moved.Broadcast()
	n.mu.Unlock()
	n.tasks.Wait()
}

func (w *wire) close() {
	w.in.Close()
	w.out.Close()
}

// front opens an address under which others reach the process named to, which listens at backend.
func (n *network) front(to, backend string) string {
	n.t.Helper()
	l, err := net.Listen("tcp", freeAddress(n.t))
	if err != nil {
		n.t.Fatal(err)
	}
	n.mu.Lock()
	n.fronts = append(n.fronts, l)
	n.mu.Unlock()
	n.tasks.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			n.tasks.Go(func() { n.carry(in, to, backend) })
		}
	})
	return l.Addr().String()
}

// runs says which process a name stands for from now on.
func (n *network) runs(name string, pid int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pids[name] = pid
}

// carry joins a connection to the process that it is meant for, until either side ends it.
func (n *network) carry(in net.Conn, to, backend string) {
	defer in.Close()
	from := n.opener(in)
	for try := 0; from == "" && try < 3; try++ { // the tables change while they are read
		time.Sleep(5 * time.Millisecond)
		from = n.opener(in)
	}
	if from == "" {
		return // it could be one that is cut off
	}
	if !n.await(from, to) || !n.await(to, from) || n.isCut(from, to) {
		return
	}
	out, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	w := &wire{from: from, to: to, in: in, out: out}
	defer w.close()
	n.mu.Lock()
	n.open[w] = true
	broken := n.closed || n.cut[[2]string{from, to}]
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.open, w)
		n.mu.Unlock()
	}()
	if broken {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { n.pump(out, in, from, to) })
	both.Go(func() { n.pump(in, out, to, from) })
	both.Wait()
}

// pump copies what from sends to to, as long as it is let through.
func (n *network) pump(dst, src net.Conn, from, to string) {
	b := make([]byte, 32<<10)
	for {
		k, err := src.Read(b)
		if k > 0 {
			if !n.await(from, to) {
				break
			}
			if _, werr := dst.Write(b[:k]); werr != nil {
				break
			}
		}
		if err == io.EOF && n.await(from, to) { // the other direction may go on
			if c, ok := dst.(*net.TCPConn); ok && c.CloseWrite() == nil {
				return
			}
		}
		if err != nil {
			break
		}
	}
	dst.Close()
	src.Close()
}

// await waits until what from sends to to is let through; false means that the network is closed.
func (n *network) await(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.mute[[2]string{from, to}] && !n.closed {
		n.moved.Wait()
	}
	return !n.closed
}

func (n *network) isCut(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[[2]string{from, to}]
}

// silence keeps back what from sends to to, as a network does that loses every packet.
func (n *network) silence(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute[[2]string{from, to}] = true
}

// sever breaks the connections between two processes, those that are open and those to come.
func (n *network) sever(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{a, b}], n.cut[[2]string{b, a}] = true, true
	for w := range n.open {
		if w.from == a && w.to == b || w.from == b && w.to == a {
			w.close()
		}
	}
}

// mend takes back silence and sever between two processes.
func (n *network) mend(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, way := range [][2]string{{a, b}, {b, a}} {
		delete(n.mute, way)
		delete(n.cut, way)
	}
	n.moved.Broadcast()
}

// opener returns the name of the process that has opened a connection, "" when it is none of the cluster's: the
// socket's inode by its port (proc_net_tcp(5)), and who has that inode open (proc_pid_fd(5)).
func (n *network) opener(in net.Conn) string {
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	remote, local := in.RemoteAddr().(*net.TCPAddr), in.LocalAddr().(*net.TCPAddr)
	ends := []byte(" " + procAddress(remote) + " " + procAddress(local) + " ")
	i := bytes.Index(b, ends)
	if i < 0 {
		return ""
	}
	f := bytes.Fields(b[i:]) // local_address, rem_address, st, queues, timer, retrnsmt, uid, timeout, inode
	if len(f) < 9 {
		return ""
	}
	socket := "socket:[" + string(f[8]) + "]"
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, pid := range n.pids {
		links, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && to == socket {
				return name
			}
		}
	}
	return ""
}

// procAddress is an IPv4 address as /proc/net/tcp writes it, on a little-endian machine.
func procAddress(a *net.TCPAddr) string {
	ip := a.IP.To4()
	return fmt.Sprintf("%s:%04X", hexUpper(ip[3], ip[2], ip[1], ip[0]), a.Port)
}

func hexUpper(b ...byte) string { return string(bytes.ToUpper([]byte(hex.EncodeToString(b)))) }

// freeAddress returns an address of loopback at which nothing listens, below the ports from which connections
// are opened: nobody takes it by chance while its process is down.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := "127.0.0.1:" + strconv.Itoa(10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("there is no free port")
	return ""
}

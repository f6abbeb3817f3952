package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	"dts"
	"dts/exec"
	"dts/sched"
	"dts/store"
	"dts/web"
	"dts/web/api"
	"dts/web/peers"
)

// cluster is what a server has beside its scheduler when others share the schedule.
type cluster struct {
	client *peers.Client
	secret string
	log    *slog.Logger
}

// joinCluster prepares calls between the servers of a cluster: they know each other by a secret in their store.
func joinCluster(ctx context.Context, st *store.Store, log *slog.Logger) (*cluster, error) {
	secret, err := st.ClusterSecret(ctx, newToken())
	if err != nil {
		return nil, err
	}
	return &cluster{client: peers.NewClient(peers.ClientOptions{Secret: secret, Log: log}), secret: secret, log: log}, nil
}

// peers returns how the scheduler tells the other servers; nil for one that is alone.
func (c *cluster) peers() sched.Peers {
	if c == nil {
		return nil
	}
	return c.client
}

// front is what the API and the pages ask: the scheduler and the runner themselves, or what finds out which server
// is to be asked.
type front struct {
	scheduler api.Scheduler
	outputs   api.Outputs
	peers     http.Handler // answers other servers; nil where there are none
	close     func()
}

// front puts the others' calls, and the calls to them, before this server's scheduler and runner.
func (c *cluster) front(st *store.Store, s *sched.Scheduler, r *exec.Runner) (*front, error) {
	if c == nil {
		return &front{scheduler: s, outputs: r, close: func() {}}, nil
	}
	router, err := peers.NewRouter(peers.RouterOptions{Local: s, Outputs: r, Store: st, Client: c.client, Log: c.log})
	if err != nil {
		return nil, err
	}
	handler, err := peers.NewHandler(peers.HandlerOptions{Local: s, Outputs: r, Secret: c.secret, Log: c.log})
	if err != nil {
		return nil, err
	}
	return &front{scheduler: router, outputs: router, peers: handler, close: router.Close}, nil
}

func (c *cluster) Close() {
	if c != nil {
		c.client.Close()
	}
}

// advertised is the address at which other servers reach this one: the one that is given, or else what follows from
// where it listens.
func advertised(given, listen string) (string, error) {
	if given != "" {
		u, err := url.Parse(given)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return "", errors.New("--advertise: must be an address such as http://10.0.0.1:8420")
		}
		return u.Scheme + "://" + u.Host, nil
	}
	if listen == web.NoListen {
		return "", errors.New("--listen: with --rqlite the other servers must reach this one; use an address, or --advertise")
	}
	host, port, err := net.SplitHostPort(cmp.Or(listen, web.DefaultListen))
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", errors.New("--listen: with --rqlite the other servers must know the port; use one that is not 0, or --advertise")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = ownAddress()
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// ownAddress returns an address of this machine that others may reach: the first that is not a loopback one.
func ownAddress() string {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// warnLoopback says what a loopback address means for a cluster.
func warnLoopback(n dts.Node, log *slog.Logger) {
	u, err := url.Parse(n.Address)
	if err != nil {
		return
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		log.Warn("other machines cannot reach this server: give --listen an address of the network, or use --advertise", "address", n.Address)
	}
}

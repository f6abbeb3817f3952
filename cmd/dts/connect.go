package main

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"dts/web/client"
)

// whichServer is the category of the flags that say which server a command talks to.
const whichServer = "Which server"

// connectionFlags say which server a command talks to.
func connectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "data", Category: whichServer, EnvVars: []string{"DTS_DATA"}, Usage: "the `DIR` of its data; its socket is in there"},
		&cli.StringFlag{Name: "server", Category: whichServer, EnvVars: []string{"DTS_SERVER"}, Usage: "its `URL`, in place of the socket; needs a token"},
		&cli.StringFlag{Name: "token", Category: whichServer, EnvVars: []string{"DTS_TOKEN"}, Usage: "the token `T`; others can see it in the process list, so rather use the variable or --token-file"},
		&cli.StringFlag{Name: "token-file", Category: whichServer, EnvVars: []string{"DTS_TOKEN_FILE"}, Usage: "a `FILE` with the token"},
		&cli.StringFlag{Name: "config", Category: whichServer, EnvVars: []string{"DTS_CONFIG"}, Usage: "a TOML `FILE` with settings"},
	}
}

// withConnection adds the flags that every command that talks to a server has.
func withConnection(flags ...cli.Flag) []cli.Flag { return append(flags, connectionFlags()...) }

// link is a connection to a server, and what is known of where it is.
type link struct {
	*client.Client
	dataDir string // "" for a server given by its URL
	socket  string
}

// remote reports whether the server was given by its URL, so that it may be another machine.
func (l *link) remote() bool { return l.dataDir == "" }

// root reports whether the server behind the socket runs as root, and whose it is: the socket belongs to
// its user. ok is false where that cannot be known.
func (l *link) owner() (uid int, ok bool) {
	info, err := os.Stat(l.socket)
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// connect finds out which server is meant. Nothing is sent yet.
func (a *app) connect(c *cli.Context) (*link, error) { return a.connectWithin(c, 0) }

// connectWithin is connect for questions that are answered within a limit; 0: the client's own.
func (a *app) connectWithin(c *cli.Context, limit time.Duration) (*link, error) {
	conf, err := loadConfig(c)
	if err != nil {
		return nil, err
	}
	server := setting(c, "server", c.String, conf.Server, "")
	if a.given["data"] {
		if a.given["server"] {
			return nil, usagef("--data and --server are both given; keep one")
		}
		server = ""
	}
	if server == "" {
		dir, err := conf.clientDir(c)
		if err != nil {
			return nil, err
		}
		socket := socketPath(dir)
		cl, err := client.New(client.Options{Socket: socket, Timeout: limit, Version: thisBuild().Version, Stale: a.warnStale()})
		return &link{cl, dir, socket}, err
	}
	token, err := a.token(c, conf)
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, usagef("--server needs a token: set DTS_TOKEN, or give --token-file; the server keeps one in admin.token in its data directory")
	}
	cl, err := client.New(client.Options{Server: server, Token: token, Timeout: limit, Version: thisBuild().Version, Stale: a.warnStale()})
	if err != nil {
		return nil, usagef("--server: %s", err)
	}
	return &link{Client: cl}, nil
}

// warnStale returns what says once that an answer may be old.
func (a *app) warnStale() func() {
	return sync.OnceFunc(func() {
		a.notef("the database cannot tell what is newest: this may be old")
	})
}

// token returns the token that is given, from the strongest source.
func (a *app) token(c *cli.Context, conf *config) (string, error) {
	token := c.String("token")
	path := c.String("token-file")
	if a.given["token-file"] && !a.given["token"] {
		token = ""
	}
	if token == "" && path == "" {
		if conf.Token != nil {
			token = *conf.Token
		} else if conf.TokenFile != nil {
			path = *conf.TokenFile
		}
	}
	if token == "" && path != "" {
		b, err := readFile(path)
		if err != nil {
			return "", usagef("--token-file: %s", err)
		}
		token = strings.TrimSpace(string(b))
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", usagef("the token holds a space or another character that no token has")
	}
	return token, nil
}

// client runs f with a connection to the server.
func (a *app) withServer(c *cli.Context, f func(*link) error) error {
	l, err := a.connect(c)
	if err != nil {
		return err
	}
	defer l.Close()
	return f(l)
}

// silent reports whether a server took the connection, or let it be waited for, and then said nothing in time.
func silent(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// noServer reports whether nothing listens where the server should.
func noServer(err error) bool { return errors.Is(err, client.ErrNoServer) }

package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"dts"
	"dts/web/auth"
)

// MaxSocketPath is how long the path of a Unix socket may be, in bytes: sun_path holds 104 with the
// closing NUL on macOS, 108 on Linux.
const MaxSocketPath = 103

// listenUnix listens on a Unix socket that only this user can connect to, or also the group of its
// directory. A socket that an earlier server left behind is replaced; one that answers is not.
func listenUnix(path string, group bool) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, errors.New("there is a file with that name that is not a socket")
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, errors.New("another server listens there")
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the socket of an earlier server: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	// Until the mode is set, others may connect if the umask lets them; the peer's user is checked anyway.
	mode := fs.FileMode(0o600)
	if group {
		mode = 0o660
		gid, err := groupOf(filepath.Dir(path))
		if err == nil {
			err = os.Chown(path, -1, gid)
		}
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("give the socket to its directory's group: %w", err)
		}
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// groupOf returns the group that a file belongs to.
func groupOf(path string) (int, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.New("this system has no groups")
	}
	return int(st.Gid), nil
}

// peerRule says who may use the socket: this user, root, and the members of a group if there is one.
type peerRule struct {
	uid int
	gid int // -1: none
}

func newPeerRule(path string, group bool) peerRule {
	r := peerRule{uid: os.Getuid(), gid: -1}
	if group {
		if gid, err := groupOf(filepath.Dir(path)); err == nil {
			r.gid = gid
		}
	}
	return r
}

// connContext finds out who is at the other end of a Unix socket.
func (s *Server) connContext(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	uid, gid, err := peerCred(u)
	if err != nil {
		s.log.Error("peer of the socket is unknown", "error", err)
		return context.WithValue(ctx, connKey{}, peer{err: dts.Errorf(dts.ErrForbidden, "the system does not say who you are on this socket")})
	}
	p, err := s.peers.principal(uid, gid)
	return context.WithValue(ctx, connKey{}, peer{p, err})
}

// principal returns who a peer is, or an error when it may not use the socket.
func (r peerRule) principal(uid, gid int) (auth.Principal, error) {
	name := strconv.Itoa(uid)
	u, err := user.LookupId(name)
	if err == nil {
		name = u.Username
	}
	if uid != r.uid && uid != 0 && !r.member(u, gid) {
		return auth.Principal{}, dts.Errorf(dts.ErrForbidden, "user %s may not use this socket; its owner, root and, where the data directory has mode 0750, its group may", name)
	}
	return auth.Principal{TenantID: dts.DefaultTenant, Name: name + " (socket)", Admin: true}, nil
}

// member reports whether a user is in the group, by its process or by the system's list.
func (r peerRule) member(u *user.User, gid int) bool {
	if r.gid < 0 {
		return false
	}
	if gid == r.gid {
		return true
	}
	if u == nil {
		return false
	}
	groups, err := u.GroupIds()
	return err == nil && slices.Contains(groups, strconv.Itoa(r.gid))
}

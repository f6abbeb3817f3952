package web

import (
	"net"
	"syscall"
)

// peerCred returns the user and group that connected to the socket: SO_PEERCRED, unix(7).
func peerCred(c *net.UnixConn) (uid, gid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *syscall.Ucred
	ctl := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if ctl != nil {
		return 0, 0, ctl
	}
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), int(cred.Gid), nil
}

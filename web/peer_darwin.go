package web

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerCred returns the user and group that connected to the socket: LOCAL_PEERCRED, unix(4).
func peerCred(c *net.UnixConn) (uid, gid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Xucred
	ctl := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	if ctl != nil {
		return 0, 0, ctl
	}
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), int(cred.Groups[0]), nil
}

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"dts/web"
)

// machineData is the data directory of a server that runs as root.
const machineData = "/var/lib/dts"

// defaultData is the data directory when none is given.
func defaultData() (string, error) {
	if os.Geteuid() == 0 {
		return machineData, nil
	}
	return userDir("XDG_DATA_HOME", ".local/share")
}

// defaultConfig is the configuration file that is read when none is given and it is there.
func defaultConfig() (string, error) {
	if os.Geteuid() == 0 {
		return "/etc/dts.toml", nil
	}
	dir, err := userDir("XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, "dts.toml"), err
}

// userDir is dts's directory in a base directory of the XDG specification, which ignores relative paths.
func userDir(variable, inHome string) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dts"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find your home directory: %w; give --data", err)
	}
	return filepath.Join(home, inHome, "dts"), nil
}

// socketPath returns where the server of a data directory listens: in that directory, or, where the path
// would be too long for a Unix socket, in the runtime directory under a name made from it. Server and
// clients compute the same one.
func socketPath(dataDir string) string {
	if p := filepath.Join(dataDir, "dts.sock"); len(p) <= web.MaxSocketPath {
		return p
	}
	if real, err := filepath.EvalSymlinks(dataDir); err == nil {
		dataDir = real
	}
	sum := sha256.Sum256([]byte(dataDir))
	name := "dts-" + hex.EncodeToString(sum[:8]) + ".sock"
	dirs := []string{os.Getenv("XDG_RUNTIME_DIR")}
	if os.Geteuid() == 0 {
		dirs = []string{"/run"} // the same whoever became root
	}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && filepath.IsAbs(dir) && len(dir)+1+len(name) <= web.MaxSocketPath {
			return filepath.Join(dir, name)
		}
	}
	return filepath.Join(os.TempDir(), name)
}

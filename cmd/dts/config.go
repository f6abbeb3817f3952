package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/urfave/cli/v2"
)

// maxConfig is how long a configuration or token file may be, in bytes.
const maxConfig = 1 << 20

// config is the configuration file. A flag comes before its environment variable, and that before the file.
type config struct {
	Data         *string  `toml:"data"`
	Server       *string  `toml:"server"`
	Token        *string  `toml:"token"`
	TokenFile    *string  `toml:"token_file"`
	Listen       *string  `toml:"listen"`
	RQLite       *string  `toml:"rqlite"`
	Advertise    *string  `toml:"advertise"`
	RQLiteCA     *string  `toml:"rqlite_ca"`
	RQLiteCert   *string  `toml:"rqlite_cert"`
	RQLiteKey    *string  `toml:"rqlite_key"`
	SocketGroup  *bool    `toml:"socket_group"`
	AllowedHosts []string `toml:"allowed_hosts"`
	PublicURL    *string  `toml:"public_url"`
	MaxHTTP      *int     `toml:"max_http"`
	MaxCommands  *int     `toml:"max_commands"`
	CPUBudget    *float64 `toml:"cpu_budget"`
	MemoryBudget *string  `toml:"memory_budget"`
	HostLimits   *bool    `toml:"host_limits"`
	Drain        *string  `toml:"drain"`
	Keep         *string  `toml:"keep"`
	KeepRows     *int64   `toml:"keep_rows"`
	KeepSize     *string  `toml:"keep_size"`
	TrustClock   *bool    `toml:"trust_clock"`
	LogLevel     *string  `toml:"log_level"`
	LogFormat    *string  `toml:"log_format"`
	HeartbeatURL *string  `toml:"heartbeat_url"`
	HeartbeatGap *string  `toml:"heartbeat_every"`
}

// loadConfig reads the file that --config or DTS_CONFIG names, or the usual one if there is one.
func loadConfig(c *cli.Context) (*config, error) {
	path := c.String("config")
	named := path != ""
	if !named {
		var err error
		if path, err = defaultConfig(); err != nil {
			return &config{}, nil // without a home there is no such file
		}
	}
	b, err := readFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && !named:
		return &config{}, nil
	case err != nil:
		return nil, usagef("configuration: %s", err)
	}
	return parseConfig(b, path)
}

// canReadAgain refuses a pipe, such as a shell's <(…): it would be waited for, or be empty and change everything to its default.
func canReadAgain(path string) error {
	if info, err := os.Stat(path); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
		return usagef("configuration: %s is a pipe, which cannot be read again; give the server a file", path)
	}
	return nil
}

func parseConfig(b []byte, path string) (*config, error) {
	var conf config
	d := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields()
	err := d.Decode(&conf)
	if err == nil {
		return &conf, nil
	}
	if e, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(e.Errors) > 0 {
		line, _ := e.Errors[0].Position()
		return nil, usagef("configuration: %s:%d: there is no setting %q; the settings are those of dts serve --help, with _ for -",
			path, line, strings.Join(e.Errors[0].Key(), "."))
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := e.Position()
		text := strings.TrimPrefix(e.Error(), "toml: ")
		return nil, usagef("configuration: %s:%d: %s", path, line, text)
	}
	return nil, usagef("configuration: %s: %s", path, err)
}

// readFile reads a small file.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(b) > maxConfig {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxConfig)
	}
	return b, err
}

// setting returns the value of a flag or its variable, or what the file says, or the default.
func setting[T any](c *cli.Context, flag string, get func(string) T, file *T, otherwise T) T {
	switch {
	case c.IsSet(flag) && fmt.Sprint(c.Value(flag)) != "": // an empty variable is none
		return get(flag)
	case file != nil:
		return *file
	}
	return otherwise
}

// dataDir returns the data directory as an absolute path.
func (conf *config) dataDir(c *cli.Context) (string, error) {
	dir := setting(c, "data", c.String, conf.Data, "")
	if dir == "" {
		return defaultData()
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return abs, nil
}

// clientDir returns the data directory of the server that a command talks to. A user without a data directory of their
// own means the machine's server, where its socket is shared with them.
func (conf *config) clientDir(c *cli.Context) (string, error) {
	dir, err := conf.dataDir(c)
	if err != nil || setting(c, "data", c.String, conf.Data, "") != "" {
		return dir, err
	}
	return sharedDir(dir, machineData), nil
}

// sharedDir returns own if there is such a directory, else the machine's if its socket can be seen, else own.
func sharedDir(own, machine string) string {
	if _, err := os.Stat(own); !errors.Is(err, os.ErrNotExist) {
		return own
	}
	if _, err := os.Stat(socketPath(machine)); err != nil {
		return own
	}
	return machine
}

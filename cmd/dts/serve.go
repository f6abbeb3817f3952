package main

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"dts/store/rqlite"
	"dts/web"
)

func (a *app) serveCommand() *cli.Command {
	const limits, cluster = "Limits", "Cluster"
	return &cli.Command{
		Name: "serve", Usage: "run the server", Category: "The server",
		Description: `Runs until SIGTERM or SIGINT, then lets runs finish for as long as --drain says. Another signal,
a second later or more, ends it at once. Everything can also be set in the configuration file, by the
name of the flag with _ for -. At SIGHUP it reads that file again: see dts reload.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data", EnvVars: []string{"DTS_DATA"}, Usage: "the `DIR` that holds everything; default: /var/lib/dts for root, else ~/.local/share/dts"},
			&cli.StringFlag{Name: "listen", EnvVars: []string{"DTS_LISTEN"}, Usage: "TCP `ADDRESS`, or none; default: " + web.DefaultListen},
			&cli.StringSliceFlag{Name: "allowed-host", EnvVars: []string{"DTS_ALLOWED_HOSTS"}, Usage: "another `NAME` by which browsers may reach it; can be repeated"},
			&cli.StringFlag{Name: "public-url", EnvVars: []string{"DTS_PUBLIC_URL"}, Usage: "the `URL` at which jobs elsewhere reach it, such as https://dts.example.com: ping URLs begin with it; default: the address at which it was asked for them"},
			&cli.BoolFlag{Name: "socket-group", EnvVars: []string{"DTS_SOCKET_GROUP"}, Usage: "let the group of the data directory use the socket"},
			&cli.StringFlag{Name: "config", EnvVars: []string{"DTS_CONFIG"}, Usage: "a TOML `FILE` with settings"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "do not say where it is"},
			&cli.IntFlag{Name: "max-http", Category: limits, EnvVars: []string{"DTS_MAX_HTTP"}, DefaultText: "364", Usage: "`N` HTTP calls in flight, of which one queue alone has 70 %"},
			&cli.IntFlag{Name: "max-commands", Category: limits, EnvVars: []string{"DTS_MAX_COMMANDS"}, DefaultText: "91", Usage: "`N` commands at once, of which one queue alone has 70 %"},
			&cli.Float64Flag{Name: "cpu-budget", Category: limits, EnvVars: []string{"DTS_CPU_BUDGET"}, DefaultText: "those of the machine", Usage: "`N` cores for tasks that ask for some"},
			&cli.StringFlag{Name: "memory-budget", Category: limits, EnvVars: []string{"DTS_MEMORY_BUDGET"}, DefaultText: "80% of the machine's", Usage: "memory for tasks that ask for some, a `SIZE` such as 512M or 16G"},
			&cli.BoolFlag{Name: "host-limits", Category: limits, EnvVars: []string{"DTS_HOST_LIMITS"}, Value: true, Usage: "hold back calls to an HTTP host that is slow or refuses them; --host-limits=false: never"},
			&cli.StringFlag{Name: "drain", Category: limits, EnvVars: []string{"DTS_DRAIN"}, Usage: "how long running tasks may go on after the signal to stop, a `DURATION`; default: 30s"},
			&cli.StringFlag{Name: "keep", Category: limits, EnvVars: []string{"DTS_KEEP"}, Usage: "how long finished tasks are kept, a `DURATION`; default: 30d"},
			&cli.Int64Flag{Name: "keep-rows", Category: limits, EnvVars: []string{"DTS_KEEP_ROWS"}, DefaultText: "1000000", Usage: "at most `N` finished tasks are kept"},
			&cli.StringFlag{Name: "keep-size", Category: limits, EnvVars: []string{"DTS_KEEP_SIZE"}, Usage: "at most a `SIZE` of finished tasks is kept, such as 500M or 2G; default: no limit"},
			&cli.StringFlag{Name: "rqlite", Category: cluster, EnvVars: []string{"DTS_RQLITE"}, Usage: "keep the tasks in the rqlite cluster at `URLS`, separated by commas, instead of in the data directory: http://user:password@a:4001,http://b:4001. With a password use DTS_RQLITE or the configuration file: other users can see flags"},
			&cli.StringFlag{Name: "advertise", Category: cluster, EnvVars: []string{"DTS_ADVERTISE"}, Usage: "the `URL` at which the other servers reach this one, such as http://10.0.0.1:8420; default: it follows from --listen"},
			&cli.StringFlag{Name: "rqlite-ca", Category: cluster, EnvVars: []string{"DTS_RQLITE_CA"}, Usage: "a PEM `FILE` with the authorities that sign the certificates of rqlite; default: the system's"},
			&cli.StringFlag{Name: "rqlite-cert", Category: cluster, EnvVars: []string{"DTS_RQLITE_CERT"}, Usage: "a PEM `FILE` with the certificate that rqlite is shown"},
			&cli.StringFlag{Name: "rqlite-key", Category: cluster, EnvVars: []string{"DTS_RQLITE_KEY"}, Usage: "a PEM `FILE` with the key of that certificate"},
			&cli.StringFlag{Name: "heartbeat-url", EnvVars: []string{"DTS_HEARTBEAT_URL"}, Usage: "ask for the `URL` while the scheduler is well, so that who waits for that notices when it is not; best not as a flag, which other users can see"},
			&cli.StringFlag{Name: "heartbeat-every", EnvVars: []string{"DTS_HEARTBEAT_EVERY"}, Usage: "how often, a `DURATION` from 1s; default: 1m"},
			&cli.BoolFlag{Name: "trust-clock", EnvVars: []string{"DTS_TRUST_CLOCK"}, Usage: "fire although the clock is earlier than the newest time in the data"},
			&cli.StringFlag{Name: "log-level", EnvVars: []string{"DTS_LOG_LEVEL"}, Usage: "`L` is debug, info, warn or error; default: info"},
			&cli.StringFlag{Name: "log-format", EnvVars: []string{"DTS_LOG_FORMAT"}, Usage: "`F` is text or json; default: text"},
		},
		Action: a.serve,
	}
}

func (a *app) serve(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	conf, err := loadConfig(c)
	if err != nil {
		return err
	}
	o, err := a.serverOptions(c, conf)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(o.LogLevel)
	o.Log = newLogger(a.err, level, o.LogFormat)
	o.Reload = newReloader(o, func() (serverOptions, error) {
		if err := canReadAgain(c.String("config")); err != nil {
			return serverOptions{}, err
		}
		conf, err := loadConfig(c)
		if err != nil {
			return serverOptions{}, err
		}
		return a.serverOptions(c, conf)
	}, level)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	defer a.onSignals(stop, o.Log)()
	defer o.Reload.onHangup(a.in, stop)()
	defer profileOnOrder(a.in, o.Log)()
	systemd := newNotifier(o.Log, o.SocketPath)
	o.Ready = func(url string) {
		if !c.Bool("quiet") {
			a.welcome(o, url)
		}
		systemd.ready(ctx)
	}
	err = runServer(ctx, o)
	systemd.wait(stop)
	return err
}

// sameSignal is how long after the first a signal is not yet a second one: timeout(1) signals its command, and then the
// command's process group, and a terminal that goes away may do that too.
const sameSignal = time.Second

// codeOf is the exit code after a signal.
func codeOf(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitInterrupted
}

// onSignals calls stop at the first signal and ends the process at a later one, at once. The function it
// returns ends that.
func (a *app) onSignals(stop func(), log *slog.Logger) func() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-done:
			return
		case s := <-signals:
			log.Info("stopping; a second signal ends it at once", "signal", s.String())
			notifyStopping(log)
			stop()
		}
		first := time.Now()
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				if time.Since(first) >= sameSignal {
					os.Exit(codeOf(s))
				}
			}
		}
	}()
	return func() { signal.Stop(signals); close(done); <-ended }
}

// serverOptions reads the settings of a server.
func (a *app) serverOptions(c *cli.Context, conf *config) (serverOptions, error) {
	o := serverOptions{
		Listen:        setting(c, "listen", c.String, conf.Listen, web.DefaultListen),
		SocketGroup:   setting(c, "socket-group", c.Bool, conf.SocketGroup, false),
		AllowedHosts:  conf.AllowedHosts,
		HTTPSlots:     setting(c, "max-http", c.Int, conf.MaxHTTP, 0),
		CommandSlots:  setting(c, "max-commands", c.Int, conf.MaxCommands, 0),
		RetentionRows: setting(c, "keep-rows", c.Int64, conf.KeepRows, 1_000_000),
		NoHostLimits:  !setting(c, "host-limits", c.Bool, conf.HostLimits, true),
		TrustClock:    setting(c, "trust-clock", c.Bool, conf.TrustClock, false),
	}
	var err error
	if o.CPUBudget, o.MemoryBudgetMB, err = budgets(c, conf); err != nil {
		return o, err
	}
	if o.DataDir, err = conf.dataDir(c); err != nil {
		return o, err
	}
	o.SocketPath = socketPath(o.DataDir)
	if o.PublicURL, err = publicURL(setting(c, "public-url", c.String, conf.PublicURL, "")); err != nil {
		return o, err
	}
	if o.RQLite, err = rqliteOptions(c, conf); err != nil {
		return o, err
	}
	if o.Advertise = setting(c, "advertise", c.String, conf.Advertise, ""); len(o.RQLite.URLs) > 0 {
		if o.Advertise, err = advertised(o.Advertise, o.Listen); err != nil {
			return o, usagef("%s", err)
		}
	} else if o.Advertise != "" {
		return o, usagef("--advertise: a server that is not given --rqlite has no others to tell")
	}
	if c.IsSet("allowed-host") {
		o.AllowedHosts = nil
		for _, h := range c.StringSlice("allowed-host") {
			o.AllowedHosts = append(o.AllowedHosts, strings.FieldsFunc(h, func(r rune) bool { return r == ',' || r == ' ' })...)
		}
	}
	for _, n := range []struct {
		flag  string
		value int64
		low   int64
	}{{"--max-http", int64(o.HTTPSlots), 0}, {"--max-commands", int64(o.CommandSlots), 0}, {"--keep-rows", o.RetentionRows, 1}} {
		if n.value < n.low {
			return o, usagef("%s: is %d; use at least %d", n.flag, n.value, n.low)
		}
	}
	if o.DrainTimeout, err = parseSpan("--drain", setting(c, "drain", c.String, conf.Drain, "30s"), 0); err != nil {
		return o, err
	}
	if o.Retention, err = parseSpan("--keep", setting(c, "keep", c.String, conf.Keep, "30d"), time.Minute); err != nil {
		return o, err
	}
	if text := setting(c, "keep-size", c.String, conf.KeepSize, ""); text != "" {
		mib, err := parseMiB(text)
		if err != nil {
			return o, usagef("--keep-size: %s", err)
		}
		o.RetentionBytes = mib << 20
	}
	o.Heartbeat.URL = setting(c, "heartbeat-url", c.String, conf.HeartbeatURL, "")
	if err := o.Heartbeat.check(); err != nil {
		return o, err
	}
	if o.Heartbeat.Every, err = parseSpan("--heartbeat-every", setting(c, "heartbeat-every", c.String, conf.HeartbeatGap, heartbeatEvery.String()), time.Second); err != nil {
		return o, err
	}
	if level := setting(c, "log-level", c.String, conf.LogLevel, "info"); o.LogLevel.UnmarshalText([]byte(level)) != nil {
		return o, usagef("--log-level: %q is not known; use debug, info, warn or error", clip(level, 20))
	}
	if o.LogFormat = setting(c, "log-format", c.String, conf.LogFormat, "text"); o.LogFormat != "text" && o.LogFormat != "json" {
		return o, usagef("--log-format: %q is not known; use text or json", clip(o.LogFormat, 20))
	}
	return o, nil
}

// publicURL checks with what ping URLs begin; it may have a path, as behind a proxy.
func publicURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", usagef("--public-url: must be an address such as https://dts.example.com")
	}
	return strings.TrimRight(text, "/"), nil
}

// rqliteOptions reads where the rqlite cluster is.
func rqliteOptions(c *cli.Context, conf *config) (rqlite.Options, error) {
	o := rqlite.Options{
		URLs:     rqlite.SplitURLs(setting(c, "rqlite", c.String, conf.RQLite, "")),
		CAFile:   setting(c, "rqlite-ca", c.String, conf.RQLiteCA, ""),
		CertFile: setting(c, "rqlite-cert", c.String, conf.RQLiteCert, ""),
		KeyFile:  setting(c, "rqlite-key", c.String, conf.RQLiteKey, ""),
	}
	if len(o.URLs) == 0 {
		for _, f := range []struct{ flag, value string }{{"--rqlite-ca", o.CAFile}, {"--rqlite-cert", o.CertFile}, {"--rqlite-key", o.KeyFile}} {
			if f.value != "" {
				return o, usagef("%s: there is no --rqlite to use it for", f.flag)
			}
		}
		return o, nil
	}
	if err := o.Check(); err != nil {
		return o, usagef("--rqlite: %s", err)
	}
	return o, nil
}

// newLogger makes a log in the format text or json.
func newLogger(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// welcome says where the server is and what to do next.
func (a *app) welcome(o serverOptions, url string) {
	here := ""
	if dir, err := defaultData(); err != nil || dir != o.DataDir {
		here = " --data " + words([]string{o.DataDir})
		if env := os.Getenv("DTS_DATA"); env != "" {
			if abs, err := filepath.Abs(env); err == nil && abs == o.DataDir {
				here = ""
			}
		}
	}
	me := a.program()
	a.printf("%s is ready\n", a.bold("dts "+thisBuild().Version))
	list := []fact{{"Address", cmp.Or(url, "none: it listens on its socket only")}, {"Socket", o.SocketPath}, {"Data", o.DataDir}}
	if len(o.RQLite.URLs) > 0 {
		list = append(list, fact{"Tasks in", "rqlite at " + strings.Join(o.RQLite.Addresses(), ", ")})
	}
	if url != "" {
		list = append(list, fact{"Open the page", me + here + " ui"})
	}
	list = append(list, fact{"Add a task", me + here + ` add --cron "*/5 * * * *" -- ./backup.sh`}, fact{"See what ran", me + here + " ls"})
	a.facts(list)
	if os.Geteuid() == 0 {
		a.printf("  It runs as root, and so do the tasks unless they name another user.\n")
	}
}

// program is how the user called this program: a command that is printed works as it stands.
func (a *app) program() string {
	if found, err := exec.LookPath("dts"); err == nil {
		if self, err := os.Executable(); err == nil && found == self {
			return "dts"
		}
	}
	if strings.ContainsRune(os.Args[0], os.PathSeparator) {
		return os.Args[0]
	}
	return "dts"
}

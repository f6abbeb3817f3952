// Command packages builds the Debian packages and the tarballs from what make has put into bin: a program for each
// platform, the manual pages and the completions. The same commit makes the same bytes: every time in them is
// SOURCE_DATE_EPOCH.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
)

// debian is what Debian calls the platforms that it has.
var debian = map[string]string{"linux-amd64": "amd64", "linux-arm64": "arm64", "linux-arm": "armhf"}

func main() {
	version := flag.String("version", "", "version of the packages, as git describe says it; empty: none was released")
	commit := flag.String("commit", "", "the commit")
	maintainer := flag.String("maintainer", "", "who maintains the packages: Name <address>")
	out := flag.String("out", "bin/packages", "directory of the packages, which is emptied first")
	flag.Parse()
	if err := run(*version, *commit, *maintainer, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(described, commit, maintainer, out string, platforms []string) error {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a Unix time in seconds", os.Getenv("SOURCE_DATE_EPOCH"))
	}
	at := time.Unix(epoch, 0).UTC()
	version := packageVersion(described, commit, at)
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755), share(version, maintainer, at)); err != nil {
		return err
	}
	for _, platform := range platforms {
		if err := tarball(out, version, platform, at); err != nil {
			return fmt.Errorf("tarball for %s: %w", platform, err)
		}
		if arch := debian[platform]; arch != "" {
			if err := deb(out, version, platform, arch, maintainer); err != nil {
				return fmt.Errorf("Debian package for %s: %w", arch, err)
			}
		}
	}
	return sums(out)
}

// describedForm is what git describe says: the tag of a release, or of one to come such as v1.2.3-rc1; then, where it is not that
// commit, how many commits there are since, and which one it is; then whether the source had changes on top of it.
var describedForm = regexp.MustCompile(`^v?(.*?)(?:-(\d+)-(g[0-9a-f]+))?(\+dirty)?$`)

// packageVersion makes of v1.2.3 the version 1.2.3, of v1.2.3-rc1 one that is older, 1.2.3~rc1, and of v1.2.3-4-gabc, four
// commits later, one that is newer, 1.2.3+4.gabc. Before the first release it is one that is older than any.
func packageVersion(described, commit string, at time.Time) string {
	if described == "" {
		return strings.TrimSuffix("0~"+at.Format("20060102.150405")+"."+commit, ".")
	}
	m := describedForm.FindStringSubmatch(described)
	version := strings.ReplaceAll(m[1], "-", "~")
	if m[2] != "" {
		version += "+" + m[2] + "." + m[3]
	}
	return version + m[4]
}

// deb builds a Debian package as nfpm.yaml says.
func deb(out, version, platform, arch, maintainer string) error {
	values := map[string]string{"VERSION": version, "ARCH": arch, "GOARCH": strings.TrimPrefix(platform, "linux-"), "MAINTAINER": maintainer}
	for k, v := range values {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	config, err := nfpm.ParseFile("packages/nfpm.yaml")
	if err != nil {
		return err
	}
	info, err := config.Get("deb")
	if err != nil {
		return err
	}
	packager, err := nfpm.Get("deb")
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	f, err := os.Create(filepath.Join(out, fmt.Sprintf("dts_%s_%s.deb", version, arch)))
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, f), f.Close())
}

// sums writes SHA256SUMS, for sha256sum -c.
func sums(out string) error {
	names, err := filepath.Glob(filepath.Join(out, "dts*"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	var list strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(b), filepath.Base(name))
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(list.String()), 0o644)
}

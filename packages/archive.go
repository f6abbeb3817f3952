package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// archived says what a tarball holds beside the program: files by pattern, and the directory that they go to.
var archived = []struct{ pattern, dir string }{
	{"LICENSE", "."}, {"README.md", "."}, {"CHANGELOG.md", "."},
	{"docs/*.md", "docs"}, {"docs/decisions/*.md", "docs/decisions"},
	{"bin/share/man1/*.1", "man/man1"},
	{"bin/share/completions/*", "completions"},
	{"init/dts.service", "init"}, {"init/group.conf", "init"}, {"init/strict.conf", "init"}, {"init/rqlited.service", "init"},
}

// tarball writes the archive of a platform, with everything in one directory.
func tarball(out, version, platform string, at time.Time) error {
	base := "dts-" + version + "-" + platform
	f, err := os.Create(filepath.Join(out, base+".tar.gz"))
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w := tar.NewWriter(z)
	add := func(from, to string, mode int64) error {
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		h := tar.Header{Name: base + "/" + filepath.ToSlash(to), Mode: mode, Size: int64(len(b)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	err = add("bin/dts-"+platform, "dts", 0o755)
	for _, a := range archived {
		names, globErr := filepath.Glob(a.pattern) // sorted
		if len(names) == 0 {
			globErr = errors.Join(globErr, errors.New("there is no "+a.pattern))
		}
		err = errors.Join(err, globErr)
		for _, name := range names {
			err = errors.Join(err, add(name, filepath.Join(a.dir, filepath.Base(name)), 0o644))
		}
	}
	return errors.Join(err, w.Close(), z.Close(), f.Close())
}

// share puts into bin/share what Debian wants in another form: manual pages that are compressed, and a list of the package's
// versions, which names this one.
func share(version, maintainer string, at time.Time) error {
	const to = "bin/share/man1.gz"
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
		return err
	}
	pages, err := filepath.Glob("bin/share/man1/*.1")
	for _, page := range pages {
		b, readErr := os.ReadFile(page)
		err = errors.Join(err, readErr, compress(b, filepath.Join(to, filepath.Base(page)+".gz")))
	}
	changes := fmt.Sprintf("dts (%s) unstable; urgency=medium\n\n  * What has changed is in CHANGELOG.md.\n\n -- %s  %s\n",
		version, maintainer, at.Format(time.RFC1123Z))
	err = errors.Join(err, compress([]byte(changes), "bin/share/changelog.gz"))
	// nfpm takes the time of a file where it is not told another one.
	return errors.Join(err, filepath.WalkDir("bin/share", func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, at, at))
	}))
}

// compress writes a compressed file without a name and a time in it, as gzip -9n does.
func compress(b []byte, to string) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = z.Write(b)
	return errors.Join(err, z.Close(), f.Close())
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dts"
)

// rotate removes the copies of a series that have had their time, after newest was made and checked: that one stays,
// whatever the others' names say. It returns what it has removed. Files of other names are never touched.
func rotate(t dts.BackupTarget, newest backupName, now time.Time) (removed []string, err error) {
	if newest.series == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(t.Dir)
	if err != nil {
		return nil, err
	}
	var old []backupName
	var errs []error
	remove := func(name string) {
		path := filepath.Join(t.Dir, name)
		switch err := os.Remove(path); {
		case err == nil:
			removed = append(removed, path)
		case !errors.Is(err, os.ErrNotExist): // or someone else was faster
			errs = append(errs, err)
		}
	}
	for _, e := range entries {
		whole, part := strings.CutSuffix(e.Name(), partSuffix)
		n, ok := parseBackupName(whole, newest.series)
		switch {
		case !ok || !e.Type().IsRegular():
		case part:
			if path := filepath.Join(t.Dir, e.Name()); removeAbandoned(path) == nil { // else somebody writes it
				removed = append(removed, path)
			}
		case n != newest:
			old = append(old, n)
		}
	}
	slices.SortFunc(old, func(a, b backupName) int { return b.at.Compare(a.at) })
	for i, n := range old {
		if t.Keep > 0 && i >= t.Keep-1 || t.KeepDays > 0 && now.Sub(n.at) > time.Duration(t.KeepDays)*dayLength {
			remove(n.String())
		}
	}
	return removed, errors.Join(errs...)
}

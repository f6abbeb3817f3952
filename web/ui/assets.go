package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static/*.css static/*.js static/*.svg
var staticFiles embed.FS

const assetPrefix = "/ui/static/"

// asset is one file of the page, as it is and compressed.
type asset struct {
	contentType string
	plain, gzip []byte
}

// assets serves the embedded files. The address of each holds a hash of its content, so browsers may keep
// it for ever and a new version of dts never meets an old script.
type assets struct {
	byURL  map[string]asset
	byName map[string]string // file name -> URL
}

func loadAssets() (*assets, error) {
	a := &assets{byURL: map[string]asset{}, byName: map[string]string{}}
	list, err := staticFiles.ReadDir("static")
	if err != nil {
		return nil, fmt.Errorf("read embedded assets: %w", err)
	}
	for _, f := range list {
		content, err := staticFiles.ReadFile("static/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("read embedded asset %s: %w", f.Name(), err)
		}
		var z bytes.Buffer
		zw := gzip.NewWriter(&z)
		zw.Write(content) // a Buffer takes everything
		zw.Close()
		sum := sha256.Sum256(content)
		url := assetPrefix + hex.EncodeToString(sum[:8]) + "/" + f.Name()
		a.byName[f.Name()] = url
		a.byURL[url] = asset{typeOf(f.Name()), content, z.Bytes()}
	}
	return a, nil
}

// typeOf is the media type of an asset, whatever the machine's own tables say.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	default: // the icon
		return "image/svg+xml"
	}
}

// url is where a file is served.
func (a *assets) url(name string) (string, error) {
	u, ok := a.byName[name]
	if !ok {
		return "", fmt.Errorf("no asset %q", name)
	}
	return u, nil
}

func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.byURL[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	hd := w.Header()
	hd.Set("Content-Type", f.contentType)
	hd.Set("Cache-Control", "public, max-age=31536000, immutable")
	hd.Set("X-Content-Type-Options", "nosniff")
	hd.Set("Vary", "Accept-Encoding")
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		hd.Set("Content-Encoding", "gzip")
		body = f.gzip
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

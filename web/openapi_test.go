package web_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestOpenAPI compares the document with the golden file, so that a change of the API is seen in review.
func TestOpenAPI(t *testing.T) {
	s := start(t, nil)
	status, h, body := s.call(t, "GET", "/openapi.json", "")
	if status != 200 || h.Get("Content-Type") != "application/openapi+json" {
		t.Fatalf("%d %s", status, h.Get("Content-Type"))
	}
	golden := filepath.Join("testdata", "openapi.golden.json")
	if *update {
		os.MkdirAll("testdata", 0o755)
		if err := os.WriteFile(golden, []byte(body+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if body+"\n" != string(want) {
		t.Errorf("the document is not the golden one; if that is meant: go test ./web -run OpenAPI -update")
	}

	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas map[string]struct {
				Properties           map[string]json.RawMessage
				AdditionalProperties any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") || len(doc.Paths) < 24 || doc.Paths["/tasks/{id}"]["patch"] == nil {
		t.Errorf("version %s, %d paths", doc.OpenAPI, len(doc.Paths))
	}
	config := string(doc.Components.Schemas["TaskRequest"].Properties["target_config"])
	if !strings.Contains(config, "HTTPTarget") || !strings.Contains(config, "CommandTarget") {
		t.Errorf("target_config is %s", config)
	}
	if doc.Components.Schemas["TaskRequest"].AdditionalProperties != false {
		t.Error("requests may have unknown fields")
	}
	// Everything that the document refers to is there.
	for part := range strings.SplitSeq(body, `"$ref": "#/components/schemas/`) {
		name, _, _ := strings.Cut(part, `"`)
		if _, ok := doc.Components.Schemas[name]; !ok && part[0] != '{' {
			t.Errorf("schema %s is missing", name)
		}
	}
}

package rqlitetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Clear drops every table and view, so that one cluster serves many tests, each beginning with an empty database.
// Nobody may be using it.
func (c *Cluster) Clear() {
	c.t.Helper()
	leader := c.Leader()
	body, _, err := leader.get("/db/query?level=strong&q=" + url.QueryEscape(
		`SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY type DESC`))
	if err != nil {
		c.t.Fatalf("list the tables: %v", err)
	}
	var list struct{ Results []struct{ Values [][]string } }
	if err := json.Unmarshal(body, &list); err != nil || len(list.Results) != 1 {
		c.t.Fatalf("list the tables: %v: %s", err, body)
	}
	drops := []string{}
	for _, v := range list.Results[0].Values {
		drops = append(drops, fmt.Sprintf(`DROP %s "%s"`, v[0], v[1]))
	}
	if len(drops) == 0 {
		return
	}
	sent, err := json.Marshal(drops)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := c.o.Client.Post(leader.URL()+"/db/execute?transaction", "application/json", bytes.NewReader(sent))
	if err != nil {
		c.t.Fatalf("drop the tables: %v", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"error"`)) {
		c.t.Fatalf("drop the tables: %v: %s: %s", err, resp.Status, answer)
	}
}

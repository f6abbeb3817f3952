package rqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rqlite/gorqlite"
)

// verdict is what is known after one attempt.
type verdict int

const (
	unclear    verdict = iota // it may have been applied, or may still be
	applied                   // it was
	already                   // the batch, or what keeps it out, was applied by an earlier attempt
	refused                   // a statement was refused, and the batch rolled back
	nothing                   // it was not applied and will not be
	denied                    // the same, and trying again is of no use at this node
	outdated                  // the same, because it comes too late
	superseded                // the same, because the schema is another
	broken                    // what must not happen: applied in part
)

// attempt is the outcome of sending something once.
type attempt struct {
	verdict verdict
	index   int // of the statement that was refused
	err     error
}

// verdict judges a call that has no usable answer.
func (c *call) verdict() verdict {
	switch {
	case c.status == 0 && !c.sent.Load():
		return nothing
	case c.status == http.StatusServiceUnavailable && strings.Contains(c.head.String(), "leader not found"):
		return nothing
	case c.status >= 300 && c.status < 500:
		return denied
	}
	return unclear
}

// topLevelError is the error of a request as a whole, which rqlite answers with 200 and gorqlite may overlook.
func (c *call) topLevelError() string {
	var body struct {
		Error string `json:"error"`
	}
	if c.head.Len() == headLen || json.Unmarshal(c.head.Bytes(), &body) != nil {
		return ""
	}
	return body.Error
}

// problem is the error of a call that was answered with 200 and yet did not do what it should.
func (c *call) problem(err error) error {
	if text := c.topLevelError(); text != "" {
		err = errors.New(text)
	}
	if err == nil {
		err = errors.New("an answer with too few results")
	}
	return fmt.Errorf("rqlite at %s: %w", c.node.address, err)
}

// neverApplied are the errors of a request as a whole with which rqlite says that nothing has entered its log.
var neverApplied = []string{"not leader", "leader not found", "store not open", "store not ready", "timed out enqueuing operation"}

// judge says what became of a batch of n statements, the first of which is its token's.
func (c *call) judge(n int, results []gorqlite.WriteResult, err error) attempt {
	if err := c.failure(); err != nil {
		return attempt{verdict: c.verdict(), err: err}
	}
	for i := range results {
		if results[i].Err == nil {
			continue
		}
		err := results[i].Err
		switch {
		case i != len(results)-1:
			return attempt{verdict: broken, err: fmt.Errorf("rqlite at %s: statement %d failed (%w), and the batch was not rolled back", c.node.address, i, err)}
		case i == 0:
			return attempt{verdict: judgeToken(err.Error()), err: fmt.Errorf("rqlite at %s: %w", c.node.address, err)}
		case isRefusal(err.Error()):
			return attempt{verdict: refused, index: i - 1, err: err}
		}
		return attempt{verdict: unclear, err: fmt.Errorf("rqlite at %s: %w", c.node.address, err)}
	}
	if err != nil || len(results) != n {
		at := attempt{verdict: unclear, err: c.problem(err)}
		for _, text := range neverApplied {
			if strings.HasSuffix(c.topLevelError(), text) {
				at.verdict = nothing
			}
		}
		return at
	}
	return attempt{verdict: applied}
}

// judgeToken judges the error of the statement that writes the token. See insertOp.
func judgeToken(text string) verdict {
	switch {
	case strings.Contains(text, "UNIQUE constraint failed: "+opTable):
		return already
	case strings.Contains(text, "NOT NULL constraint failed: "+opTable+".epoch"):
		return outdated
	case strings.Contains(text, "NOT NULL constraint failed: "+opTable), strings.Contains(text, "no such table: "):
		return superseded
	}
	return unclear
}

// troubles begin the errors of SQLite that are about its surroundings. All others are about the statement, and refuse it.
var troubles = []string{"database or disk is full", "disk I/O error", "database disk image is malformed", "file is not a database",
	"database is locked", "database table is locked", "database schema is locked", "locking protocol", "out of memory", "interrupted",
	"attempt to write a readonly database", "unable to open database file", "execute timeout", "query timeout", "context "}

func isRefusal(text string) bool {
	for _, t := range troubles {
		if strings.HasPrefix(text, t) {
			return false
		}
	}
	return true
}

package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"dts/migrations"
	"dts/store/rqlite"
	"dts/store/rqlite/rqlitetest"
)

// onRqlite are the tests that TestOnRqlite runs again: all that call open.
var onRqlite = map[string]func(*testing.T){
	"TestEveryTableCarriesTheTenant": TestEveryTableCarriesTheTenant,
	"TestStaleAttempts":              TestStaleAttempts,
	"TestShortAttempt":               TestShortAttempt,
	"TestListPages":                  TestListPages,
	"TestLedgerPages":                TestLedgerPages,
	"TestCounts":                     TestCounts,
	"TestTakeStarts":                 TestTakeStarts,
	"TestLoadDueOfQueues":            TestLoadDueOfQueues,
	"TestRetention":                  TestRetention,
	"TestRetentionOfRuns":            TestRetentionOfRuns,
	"TestRunWaitsForItsSteps":        TestRunWaitsForItsSteps,
	"TestRunsUnderWay":               TestRunsUnderWay,
	"TestRetryPlannedBeforeAnEnd":    TestRetryPlannedBeforeAnEnd,
	"TestRetentionOfTenants":         TestRetentionOfTenants,
	"TestKeysOutlive":                TestKeysOutlive,
	"TestOldSkips":                   TestOldSkips,
	"TestQueueSettings":              TestQueueSettings,
	"TestQueueStates":                TestQueueStates,
	"TestClusterSecret":              TestClusterSecret,
	"TestReplaceToken":               TestReplaceToken,
	"TestPings":                      TestPings,
	"TestPingSecret":                 TestPingSecret,
	"TestLook":                       TestLook,
	"TestDependencyTypes":            TestDependencyTypes,
	"TestDependencyAll":              TestDependencyAll,
	"TestDependencyAny":              TestDependencyAny,
	"TestDependencyDeep":             TestDependencyDeep,
	"TestDependencyVerbs":            TestDependencyVerbs,
	"TestDependencyChanges":          TestDependencyChanges,
	"TestDependencyCircles":          TestDependencyCircles,
	"TestDependencyKeys":             TestDependencyKeys,
	"TestDependencyRetention":        TestDependencyRetention,
	"TestGraph":                      TestGraph,
	"TestBatch":                      TestBatch,
	"TestTaskFilters":                TestTaskFilters,
	"TestExpired":                    TestExpired,
	"TestUnreadable":                 TestUnreadable,
	"TestDedupe":                     TestDedupe,
	"TestDedupeRace":                 TestDedupeRace,
	"TestKeyRace":                    TestKeyRace,
}

// clusters has the cluster of each test that runs on rqlite, by the name of TestOnRqlite's own.
var clusters sync.Map

// TestOnRqlite runs the tests of the store once more, on a real rqlite.
func TestOnRqlite(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	clusters.Store(t.Name(), c)
	for name, f := range onRqlite {
		t.Run(name, f)
	}
}

func clusterOf(t *testing.T) *rqlitetest.Cluster {
	root, _, _ := strings.Cut(t.Name(), "/")
	c, _ := clusters.Load(root)
	cluster, _ := c.(*rqlitetest.Cluster)
	return cluster
}

func openRqlite(t *testing.T, c *rqlitetest.Cluster) *rqlite.DB {
	t.Helper()
	c.Clear()
	db, err := rqlite.Open(ctx, rqlite.Options{URLs: c.URLs(), Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// TestOnRqliteIsComplete: a test of the store that is added runs on rqlite too.
func TestOnRqliteIsComplete(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	test := regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{\n(.*?)^\}`)
	found := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range test.FindAllStringSubmatch(string(b), -1) {
			if strings.Contains(m[2], ":= open"+"(t)") {
				found++
				if onRqlite[m[1]] == nil {
					t.Errorf("%s: %s is missing in onRqlite", name, m[1])
				}
			}
		}
	}
	if found != len(onRqlite) {
		t.Errorf("found %d tests that call open, and onRqlite has %d", found, len(onRqlite))
	}
}

package dts

import (
	"context"
	"sync/atomic"
)

// Staleness tells whether what was read may be older than what was acknowledged. A nil *Staleness allows no stale
// read.
type Staleness struct{ stale atomic.Bool }

// Set notes that an answer may be old.
func (s *Staleness) Set() { s.stale.Store(true) }

// Stale reports whether an answer may be old.
func (s *Staleness) Stale() bool { return s != nil && s.stale.Load() }

type stalenessKey struct{}

// AllowStale returns a context for one request that reads: where the database cannot answer with what is newest,
// because its cluster has no leader, it may answer with what it has at hand, and says so in the Staleness. From
// then on all reads with this context are such reads, so that they fit together.
func AllowStale(ctx context.Context) (context.Context, *Staleness) {
	s := &Staleness{}
	return context.WithValue(ctx, stalenessKey{}, s), s
}

// RefuseStale returns a context whose reads must not be old, for what goes on for longer than one answer.
func RefuseStale(ctx context.Context) context.Context {
	return context.WithValue(ctx, stalenessKey{}, (*Staleness)(nil))
}

// StalenessOf returns what notes that reads with this context were stale; nil where they must not be.
func StalenessOf(ctx context.Context) *Staleness {
	s, _ := ctx.Value(stalenessKey{}).(*Staleness)
	return s
}

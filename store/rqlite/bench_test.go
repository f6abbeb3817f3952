package rqlite

import (
	"fmt"
	"testing"

	"github.com/rqlite/gorqlite"

	"dts/store"
	"dts/store/rqlite/rqlitetest"
)

// BenchmarkApply measures batches of n rows through Apply, beside raw ones: the same rows in the same request, sent by gorqlite to
// the leader, without a token or a check.
func BenchmarkApply(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		c := rqlitetest.Start(b, rqlitetest.Options{Nodes: nodes})
		d := openTest(b, Options{URLs: c.URLs()})
		id := int64(0)
		for _, n := range []int{1, 10, 100, 1000} {
			batch := make([]store.Stmt, n)
			raw := make([]gorqlite.ParameterizedStatement, n)
			fill := func() {
				for i := range batch {
					id++
					batch[i] = put(id, "narrow")
					raw[i] = gorqlite.ParameterizedStatement{Query: batch[i].SQL, Arguments: batch[i].Args}
				}
			}
			run := func(name string, send func() error) {
				b.Run(fmt.Sprintf("nodes=%d/rows=%d/%s", nodes, n, name), func(b *testing.B) {
					for b.Loop() {
						fill()
						if err := send(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "rows/s")
				})
			}
			run("raw", func() error {
				ctx, _ := newCall(b.Context(), d.node())
				_, err := d.node().write.WriteParameterizedContext(ctx, raw)
				return err
			})
			run("apply", func() error {
				_, err := d.Apply(b.Context(), batch...)
				return err
			})
		}
	}
}

// BenchmarkQuery measures a query of one row at each level.
func BenchmarkQuery(b *testing.B) {
	c := rqlitetest.Start(b, rqlitetest.Options{Nodes: 3})
	d := openTest(b, Options{URLs: c.URLs()})
	mustApply(b, d, put(1, "x"))
	for _, level := range []store.Level{store.Stale, store.OwnWrites} {
		b.Run(level.String(), func(b *testing.B) {
			for b.Loop() {
				rows, err := d.Query(b.Context(), level, store.Stmt{SQL: `SELECT s FROM t WHERE id = ?`, Args: []any{1}})
				if err != nil {
					b.Fatal(err)
				}
				rows.Close()
			}
		})
	}
}

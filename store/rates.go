package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"dts"
)

// takeTries is how often TakeStarts tries again when another server was faster.
const takeTries = 10

// TakeStarts takes up to want starts from the rate of a queue, which all servers share: see dts.Rate.Take. What is taken
// counts, also where it is not used. Starts that may or may not have been taken, because the outcome of the write is
// unknown, are an error, and lost.
func (s *Store) TakeStarts(ctx context.Context, k dts.QueueKey, r dts.Rate, want int, now time.Time) (dts.Starts, error) {
	for range takeTries {
		var tat sql.NullInt64
		if _, err := s.one(ctx, "read what was taken of a rate", Stmt{
			`SELECT tat FROM queue_rates WHERE tenant_id = ? AND name = ?`, []any{k.TenantID, k.Name}}, &tat); err != nil {
			return dts.Starts{}, err
		}
		var through time.Time
		if tat.Valid {
			through = time.UnixMicro(tat.Int64).UTC()
		}
		got, after := r.Take(through, dts.Micros(now), want)
		if got.N == 0 {
			return got, nil
		}
		// Sent twice, the second one is refused, and takes starts once more: too few are used then, never too many.
		_, err := s.apply(ctx, "take starts of a rate",
			Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL
				WHERE (SELECT tat FROM queue_rates WHERE tenant_id = ? AND name = ?) IS NOT ?`, []any{k.TenantID, k.Name, nullInt(tat)}},
			Stmt{`INSERT INTO queue_rates (tenant_id, name, tat) VALUES (?,?,?) ON CONFLICT (tenant_id, name) DO UPDATE SET tat = excluded.tat`,
				[]any{k.TenantID, k.Name, after.UnixMicro()}})
		if err == nil {
			return got, nil
		}
		if !errors.Is(err, ErrRefused) {
			return dts.Starts{}, err
		}
	}
	return dts.Starts{From: dts.Micros(now.Add(dts.StartsAhead))}, nil
}

func nullInt(n sql.NullInt64) any {
	if !n.Valid {
		return nil
	}
	return n.Int64
}

package store

import (
	"context"

	"dts"
)

// ClusterSecret returns what the servers of a cluster know each other by: the proposal if there was none yet, else
// the one that is there.
func (s *Store) ClusterSecret(ctx context.Context, proposal string) (secret string, err error) {
	if _, err := s.apply(ctx, "propose the cluster's secret", Stmt{
		`INSERT INTO settings (tenant_id, name, value) VALUES ('system', 'cluster_secret', ?) ON CONFLICT DO NOTHING`, []any{proposal}}); err != nil {
		return "", err
	}
	err = s.query(ctx, "read the cluster's secret", Linearizable, Stmt{
		`SELECT value FROM settings WHERE tenant_id = 'system' AND name = 'cluster_secret'`, nil},
		func(r scanner) error { return r.Scan(&secret) })
	if err == nil && secret == "" {
		err = dts.Errorf(dts.ErrInternal, "the cluster's secret is empty")
	}
	return secret, err
}

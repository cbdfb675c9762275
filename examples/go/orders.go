package orders

import (
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// Store keeps orders: a row per user, with a column per order and a counter.
type Store struct{ table *hbase.Table }

// NewStore makes a store over a table with the family "o".
func NewStore(table *hbase.Table) *Store { return &Store{table: table} }

// Place notes an order, and gives how many the user has placed.
func (s *Store) Place(ctx context.Context, user, order string) (int64, error) {
	if err := s.table.Put(ctx, hbase.NewPut(user).Set("o", order, []byte("open"))); err != nil {
		return 0, fmt.Errorf("place order %s of %s: %w", order, user, err)
	}
	return s.table.IncrementColumn(ctx, []byte(user), "o", "count", 1)
}

// Users gives the users that have placed orders, in order.
func (s *Store) Users(ctx context.Context) (users []string, err error) {
	for row, err := range s.table.Scan(ctx, hbase.NewScan()).Rows() {
		if err != nil {
			return nil, err
		}
		users = append(users, string(row.Row))
	}
	return users, nil
}

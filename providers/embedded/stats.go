package embedded

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// stats are provider.Stats. Each call reads one state of the file, which no write
// changes meanwhile and which keeps no write waiting.
type stats struct{ store *store }

// Queues returns the names of all queues: provider.Stats.
func (s *stats) Queues(ctx context.Context) ([]string, error) {
	names := []string{}
	err := s.store.readRows(ctx, "select name from queue where scope = 0 order by name", nil, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

const sqlStats = `select depth, held, dead,
	(select count(*) from running where running.q = queue.q),
	(select min(pos) from ready where ready.q = queue.q),
	(select at from dead where dead.q = queue.q order by n limit 1)
from queue where scope = 0 and name = ?`

// Queue returns the numbers of one queue: provider.Stats. Depth includes jobs that
// stand behind another of their ordering key; OldestReady counts from when a job
// entered its queue, which it keeps while it is retried in its key or released.
func (s *stats) Queue(ctx context.Context, queue string) (provider.QueueStats, error) {
	var depth, held, dead, running int64
	var oldest, oldestDead sql.NullInt64
	_, err := s.store.readRow(ctx, sqlStats, []any{queue}, &depth, &held, &dead, &running, &oldest, &oldestDead)
	if err != nil {
		return provider.QueueStats{}, err
	}
	now := s.store.in.now()
	return provider.QueueStats{
		Depth:       provider.Measured(depth - held - running),
		OldestReady: provider.Measured(since(now, oldest, 1000)),
		InFlight:    provider.Measured(running),
		Held:        provider.Measured(held),
		Dead:        provider.Measured(dead),
		OldestDead:  provider.Measured(since(now, oldestDead, 1)),
	}, nil
}

// since returns the time since an instant in units of so many nanoseconds; 0 if
// there is none.
func since(now int64, at sql.NullInt64, unit int64) time.Duration {
	if !at.Valid {
		return 0
	}
	return time.Duration(max(0, now-at.Int64*unit))
}

// readRow reads one row, and reports whether there was one.
func (s *store) readRow(ctx context.Context, query string, args []any, into ...any) (bool, error) {
	found := false
	err := s.readRows(ctx, query, args, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(into...)
	})
	return found, err
}

// readRows calls each for every row, on a connection that only reads.
func (s *store) readRows(ctx context.Context, query string, args []any, each func(*sql.Rows) error) error {
	if !s.reading.Enter() {
		return provider.ErrClosed
	}
	defer s.reading.Leave()
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return fault(s.path, err)
	}
	for rows.Next() {
		if err := each(rows); err != nil {
			return fault(s.path, errors.Join(err, rows.Close()))
		}
	}
	return fault(s.path, errors.Join(rows.Err(), rows.Close()))
}

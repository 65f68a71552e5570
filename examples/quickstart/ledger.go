package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	_ "modernc.org/sqlite" // the driver of the business database
)

// ledger is the shop's own database: what was really charged and sent. Backstage
// knows nothing of it.
type ledger struct{ db *sql.DB }

// openLedger opens the database file, and makes its tables.
func openLedger(ctx context.Context, path string) (*ledger, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `
		create table if not exists effect(job_id text primary key, kind text, order_id text, pid int) without rowid;
		create table if not exists start(job_id text, kind text, order_id text, pid int, attempt int);`)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	return &ledger{db}, nil
}

// started notes a start of a handler.
func (l *ledger) started(ctx context.Context, jobID, kind, orderID string, attempt int) error {
	_, err := l.db.ExecContext(ctx, `insert into start values(?,?,?,?,?)`, jobID, kind, orderID, os.Getpid(), attempt)
	return err
}

// once has an effect at most once for a job: the job's id and the effect are
// inserted in one transaction, so that a second run finds the first one's. It
// reports whether this run had the effect.
func (l *ledger) once(ctx context.Context, jobID, kind, orderID string) (bool, error) {
	result, err := l.db.ExecContext(ctx, `insert into effect values(?,?,?,?) on conflict do nothing`, jobID, kind, orderID, os.Getpid())
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}

// count returns a number that a query gives.
func (l *ledger) count(ctx context.Context, query string, args ...any) (n int, err error) {
	err = l.db.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

func (l *ledger) close() error { return l.db.Close() }

package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	backstage "github.com/backstage-go/backstage/runtime"
	_ "modernc.org/sqlite" // the driver of the shop's own database
)

// ledger is the shop's own database: which orders were accepted, and what was
// really charged, mailed and shipped. The broker knows nothing of it, so that it
// can tell whether the broker and the workers kept their word.
type ledger struct {
	db *sql.DB
	// shop begins the number of every order. Each ledger has its own, so that the
	// orders of a new one are not taken for those of an old one, which the broker may
	// still remember.
	shop string
}

// kind is what was done for an order.
type kind string

const (
	charge  kind = "charge"
	refusal kind = "refusal" // the bank took nothing, for good
	receipt kind = "receipt"
	parcel  kind = "parcel"
)

const tables = `
	create table if not exists shop(name text not null);
	create table if not exists accepted(job_id text primary key, order_id text not null) without rowid;
	create table if not exists effect(
		job_id text primary key, kind text not null, order_id text not null, again int not null default 0) without rowid;
	create table if not exists run(
		job_id text not null, task text not null, worker text not null, replays int not null, attempt int not null);`

// openLedger opens the database file, and makes its tables. Every commit is on disk
// before it returns: an effect must not be gone when its job is.
func openLedger(ctx context.Context, path string) (*ledger, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	l := &ledger{db: db}
	if _, err = db.ExecContext(ctx, tables); err == nil {
		_, err = db.ExecContext(ctx, `insert into shop select ? where not exists (select * from shop)`, rand.Text()[:4])
	}
	if err == nil {
		err = db.QueryRowContext(ctx, `select name from shop`).Scan(&l.shop)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", path, err), db.Close())
	}
	return l, nil
}

func (l *ledger) close() error { return l.db.Close() }

// accepted is an order and the job that stands for it.
type accepted struct{ jobID, orderID string }

// accept notes what the broker has accepted.
func (l *ledger) accept(ctx context.Context, all []accepted) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	for _, a := range all {
		if _, err := tx.ExecContext(ctx, `insert into accepted values(?,?) on conflict do nothing`, a.jobID, a.orderID); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// has reports whether a job stands for an accepted order.
func (l *ledger) has(ctx context.Context, jobID string) (found bool, err error) {
	err = l.db.QueryRowContext(ctx, `select exists(select * from accepted where job_id=?)`, jobID).Scan(&found)
	return found, err
}

// once has an effect for a job at most once: the job's id and the effect are one
// row, so that a second run finds the first one's, and is counted as such.
func (l *ledger) once(ctx context.Context, jobID string, what kind, orderID string) error {
	_, err := l.db.ExecContext(ctx, `insert into effect(job_id, kind, order_id) values(?,?,?)
		on conflict do update set again = again + 1`, jobID, what, orderID)
	return err
}

// noteRuns is an interceptor that notes each start of a handler.
func (l *ledger) noteRuns(next backstage.HandleFunc) backstage.HandleFunc {
	return func(ctx context.Context, run *backstage.Run) error {
		info := run.Info()
		if _, err := l.db.ExecContext(ctx, `insert into run values(?,?,?,?,?)`,
			info.ID, info.Task, info.Worker, info.Replays, info.Attempt); err != nil {
			return fmt.Errorf("note run: %w", err)
		}
		return next(ctx, run)
	}
}

package main

import "context"

// numbers are what the ledger counts, of its own orders alone: a broker may bring
// jobs of others.
type numbers struct {
	orders   int // that were accepted
	accepted int // jobs that charge them: an order whose card was refused may be ordered again
	charged  int // of these jobs
	refused  int // of these jobs
	receipts int
	parcels  int
	twice    int // orders with two charges, two receipts or two parcels: there must be none

	retried    int // runs after a failed one
	restarted  int // runs of an attempt that had been started before
	recognised int // of them, those that found their effect done, by the job's id
}

func (l *ledger) numbers(ctx context.Context) (n numbers, err error) {
	err = l.db.QueryRowContext(ctx, `
		with own as (select effect.* from effect where order_id in (select order_id from accepted)),
		     start as (select job_id || ' ' || replays || ' ' || attempt as attempted, attempt from run)
		select
			(select count(distinct order_id) from accepted),
			(select count(*) from accepted),
			(select count(*) from effect join accepted using(job_id) where kind='charge'),
			(select count(*) from effect join accepted using(job_id) where kind='refusal'),
			(select count(*) from own where kind='receipt'),
			(select count(*) from own where kind='parcel'),
			(select count(*) from (select 1 from own where kind<>'refusal' group by order_id, kind having count(*)>1)),
			(select count(distinct attempted) from start where attempt>1),
			(select count(*) - count(distinct attempted) from start),
			(select coalesce(sum(again), 0) from effect)`).Scan(
		&n.orders, &n.accepted, &n.charged, &n.refused, &n.receipts, &n.parcels, &n.twice, &n.retried, &n.restarted, &n.recognised)
	return n, err
}

// open counts the accepted jobs without an outcome.
func (n numbers) open() int { return n.accepted - n.charged - n.refused }

// done reports whether every accepted order has its outcome, and everything that
// follows from it.
func (n numbers) done() bool {
	return n.open() == 0 && n.receipts == n.charged && n.parcels == n.charged && n.twice == 0
}

// finished reports whether what was accepted when then was counted is done by now.
func (n numbers) finished(then numbers) bool {
	return n.charged+n.refused >= then.accepted && n.receipts >= then.charged && n.parcels >= then.charged
}

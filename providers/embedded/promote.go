package embedded

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	// finest is the grain of due times: how exactly a promoter wakes up.
	finest = time.Millisecond
	// mostDue is how many jobs are promoted in one step.
	mostDue = 500
	// refusedWait is when a job is tried again that publish refused.
	refusedWait = time.Second
	// outageWait is how long a promoter rests after an error.
	outageWait = 250 * time.Millisecond
)

const (
	sqlNextDue = "select min(due) from held where scope = ? and behind = 0"
	sqlDue     = `select h.n, h.q, h.pos, j.key from held h join job j on j.n = h.n
where h.scope = ? and h.behind = 0 and h.due <= ? order by h.due, h.n`
	sqlDropDue  = "delete from held where n in (select value from json_each(?))"
	sqlReadyAll = "insert into ready (q, pos, n) select ?1, ?2 + key, value from json_each(?3)"
	sqlMoveJob  = "update job set q = ? where n = ?"
)

// Promote moves due jobs: provider.Delays.
func (d *delays) Promote(ctx context.Context, publish provider.Publish) error {
	if !d.store.calls.Enter() {
		return provider.ErrClosed
	}
	defer d.store.calls.Leave()
	within, cancel := d.store.untilClosed(ctx)
	defer cancel()
	p := d.store.promoters.join()
	defer d.store.promoters.quit(p)
	for {
		p.sleepUntil(0) // so that what is held from now on wakes it
		again, err := d.promoteSome(within, publish)
		rest := outageWait
		switch {
		case within.Err() != nil:
			return d.store.whyEnded(ctx)
		case errors.Is(err, provider.ErrClosed) || final(err):
			return err
		case err == nil:
			p.sleepUntil(again)
			rest = d.restUntil(again)
		}
		p.rest(within, rest)
	}
}

// promoteSome moves what is due, up to a number, and returns when to look again; 0:
// at once.
func (d *delays) promoteSome(ctx context.Context, publish provider.Publish) (int64, error) {
	due, err := d.nextDue(ctx)
	if err != nil || due > d.store.in.now() {
		return due, err
	}
	if publish != nil {
		return d.publishDue(ctx, publish)
	}
	return 0, d.store.writer.do(ctx, func(t *transaction) error {
		t.promote(d.scope.id(t))
		return nil
	})
}

// nextDue returns when the scope's next job is due.
func (d *delays) nextDue(ctx context.Context) (int64, error) {
	scope, found, err := d.scope.find(ctx, d.store)
	if err != nil || !found {
		return forever, err
	}
	var due sql.NullInt64
	if _, err := d.store.readRow(ctx, sqlNextDue, []any{scope}, &due); err != nil || !due.Valid {
		return forever, err
	}
	return due.Int64, nil
}

// restUntil returns how long a promoter may sleep.
func (d *delays) restUntil(due int64) time.Duration {
	if due == 0 {
		return 0
	}
	return max(finest, min(time.Duration(due-d.store.in.now()), idleLook))
}

// dueNow returns due jobs of a scope, up to a number, of each ordering key the first.
func (t *transaction) dueNow(scope int64, most int) []heldRow {
	var due []heldRow
	t.query(sqlDue, []any{scope, t.now}, func(r row) error {
		h := heldRow{scope: scope}
		if err := r.scan(&h.n, &h.q, &h.pos, &h.key); err != nil {
			return err
		}
		if due = append(due, h); len(due) == most {
			return errEnough
		}
		return nil
	})
	return due
}

// promote moves due jobs of a scope into the file's own queues, up to a number.
func (t *transaction) promote(scope int64) {
	for left := mostDue; left > 0; {
		due := t.dueNow(scope, left)
		if len(due) == 0 {
			return
		}
		t.moveIn(due)
		left -= len(due)
	}
}

// moveIn moves jobs into the file's own queues: to their places, if they kept one.
func (t *transaction) moveIn(due []heldRow) {
	if len(due) == 0 {
		return
	}
	t.exec(sqlDropDue, numbers(due, func(h heldRow) int64 { return h.n }))
	fresh := make(map[int64][]int64)
	for _, h := range due {
		t.tally(h.q).held--
		t.elect(h.scope, h.waitsIn())
		if h.scope != scopeOwn {
			h = t.adopt(h)
		}
		switch {
		case h.pos != 0:
			t.makeReady(h.q, h.pos, h.n)
		case h.key != 0:
			t.joinLate(h)
		default:
			fresh[h.q] = append(fresh[h.q], h.n)
		}
	}
	for q, list := range fresh {
		t.exec(sqlReadyAll, q, t.take(int64(len(list))), numbers(list, same))
		t.nowReady(q)
	}
}

// adopt moves a borrower's job into the file's own queue of that name.
func (t *transaction) adopt(h heldRow) heldRow {
	var name string
	t.row("select name from queue where q = ?", []any{h.q}, &name)
	h.q, h.pos = t.queue(scopeOwn, name), 0
	t.exec(sqlMoveJob, h.q, h.n)
	t.tally(h.q).depth++
	return h
}

// joinLate puts a job that was held before it ever waited at the end of its key.
func (t *transaction) joinLate(h heldRow) {
	first := !t.row(sqlLineHas, []any{h.q, h.key})
	pos := t.next()
	t.exec(t.w.insert.line.of[0], h.q, h.key, pos, h.n)
	if first {
		t.makeReady(h.q, pos, h.n)
	}
}

// promoters are the calls of Promote in this process.
type promoters struct {
	mu   sync.Mutex
	list map[*promoter]bool
}

type promoter struct {
	mu    sync.Mutex
	until int64 // when it wakes by itself
	wake  chan struct{}
}

func (ps *promoters) join() *promoter {
	p := &promoter{wake: make(chan struct{}, 1)}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.list == nil {
		ps.list = make(map[*promoter]bool)
	}
	ps.list[p] = true
	return p
}

func (ps *promoters) quit(p *promoter) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.list, p)
}

func (ps *promoters) any() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return len(ps.list) > 0
}

// tell wakes those that would sleep beyond a time. (A promoter of another scope
// may be woken for nothing.)
func (ps *promoters) tell(due int64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for p := range ps.list {
		p.mu.Lock()
		late := p.until > due || p.until == 0
		p.mu.Unlock()
		if late {
			p.poke()
		}
	}
}

// tellAll wakes all, because another process may have held something.
func (ps *promoters) tellAll() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for p := range ps.list {
		p.poke()
	}
}

func (p *promoter) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *promoter) sleepUntil(due int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = due
}

// rest sleeps until it is woken or a time has passed.
func (p *promoter) rest(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-p.wake:
	case <-timer.C:
	}
}

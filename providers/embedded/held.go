package embedded

import (
	"context"

	"github.com/backstage-go/backstage/runtime/provider"
)

// heldRow is a job that waits for its time.
type heldRow struct {
	n, scope, q, due, idh, pos, token int64

	key  int64 // the job's
	body []byte
}

const (
	sqlHeldByID = `select h.n, h.q, h.due, h.pos, h.token, j.key, j.body from held h join job j on j.n = h.n
where h.scope = ? and h.idh = ?`
	sqlRenew    = "update held set due = ?, token = 0 where n = ?"
	sqlDropHeld = "delete from held where n = ?"
	sqlDropJob  = "delete from job where n = ?"
)

func (t *transaction) insertHeld(h heldRow) {
	at := h.waitsIn()
	t.exec(t.w.insert.held.of[0], h.n, h.scope, h.q, h.due, h.idh, h.pos, at.key, at.key != 0, h.token)
	t.tally(h.q).held++
	if at.key == 0 {
		t.heldUntil(h.scope, h.due)
		return
	}
	t.elect(h.scope, at)
}

// heldUntil notes when a promoter of the scope has something to do.
func (t *transaction) heldUntil(scope, due int64) {
	t.stir = true
	if t.due == nil {
		t.due = make(map[int64]int64)
	}
	if earlier, ok := t.due[scope]; !ok || due < earlier {
		t.due[scope] = due
	}
}

// hold keeps a job for its time. A copy of it that is held already is replaced,
// and keeps its place in its key.
func (t *transaction) hold(scope int64, e *entry) {
	due := t.after(e.delay)
	if old := t.heldCopy(scope, e); old != nil {
		if old.q == e.q && old.key == e.key {
			t.exec(sqlSetBody, e.body, old.n)
			t.exec(sqlRenew, due, old.n)
			t.heldUntil(scope, due)
			t.elect(scope, old.waitsIn())
			t.uncount(scope, e.q)
			return
		}
		t.dropHeld(*old)
	}
	e.n = t.next()
	t.insertJobs([]*entry{e})
	t.insertHeld(heldRow{n: e.n, scope: scope, q: e.q, due: due, idh: hash(e.id), key: e.key})
}

// uncount takes back what arrivals counted for a job that replaces one.
func (t *transaction) uncount(scope, q int64) {
	if scope == scopeOwn {
		t.tally(q).depth--
	}
}

// heldCopy finds a held copy of a job in the same state.
func (t *transaction) heldCopy(scope int64, e *entry) *heldRow {
	found := t.heldByID(scope, e.id)
	if len(found) == 0 {
		return nil
	}
	job, err := provider.Unmarshal(e.body)
	if err != nil {
		return nil
	}
	for i := range found {
		if old, err := provider.Unmarshal(found[i].body); err == nil && old.SameStamp(&job) {
			return &found[i]
		}
	}
	return nil
}

// heldByID finds the held jobs whose id may be this one.
func (t *transaction) heldByID(scope int64, id string) []heldRow {
	var found []heldRow
	t.query(sqlHeldByID, []any{scope, hash(id)}, func(r row) error {
		h := heldRow{scope: scope}
		err := r.scan(&h.n, &h.q, &h.due, &h.pos, &h.token, &h.key, &h.body)
		found = append(found, h)
		return err
	})
	return found
}

// dropHeld removes a held job.
func (t *transaction) dropHeld(h heldRow) {
	t.exec(sqlDropHeld, h.n)
	t.exec(sqlDropJob, h.n)
	t.forgotten(h)
}

// delays are provider.Delays within a scope.
type delays struct {
	store *store
	scope scopeRef
}

// Hold keeps jobs until they are due: provider.Delays.
func (d *delays) Hold(ctx context.Context, jobs []provider.Job) []provider.Stored {
	results := make([]provider.Stored, len(jobs))
	entries := make([]entry, 0, len(jobs))
	for i := range jobs {
		results[i] = provider.Stored{ID: jobs[i].ID, Outcome: provider.OutcomeRefused}
		e := entry{}
		if err := e.set(&jobs[i]); err != nil {
			results[i].Err = err
			continue
		}
		e.at = i
		entries = append(entries, e)
	}
	for len(entries) > 0 {
		n := portion(entries)
		outcome, err := d.hold(ctx, entries[:n])
		for i := range entries[:n] {
			results[entries[i].at].Outcome, results[entries[i].at].Err = outcome, err
		}
		entries = entries[n:]
	}
	return results
}

func (d *delays) hold(ctx context.Context, entries []entry) (provider.Outcome, error) {
	return d.store.storing(ctx, func(t *transaction) error {
		scope := d.scope.id(t)
		for i := range entries {
			e := &entries[i]
			e.q = t.queue(scope, e.queue)
			if scope == scopeOwn {
				t.tally(e.q).depth++
			}
			t.hold(scope, e)
		}
		return nil
	})
}

// Cancel removes held jobs that never started: provider.Delays. What a promoter is
// publishing at this moment is not held any more.
func (d *delays) Cancel(ctx context.Context, id string) ([]provider.Job, error) {
	var cancelled []provider.Job
	err := d.store.doFreeing(ctx, func(t *transaction) error {
		cancelled = nil
		scope := d.scope.id(t)
		for _, h := range t.heldByID(scope, id) {
			job, err := provider.Unmarshal(h.body)
			reserved := h.token > 0 && h.due > t.now
			if err != nil || job.ID != id || job.Started() || reserved {
				continue
			}
			t.dropHeld(h)
			t.free(scope, job.Dedupe.Key, id)
			cancelled = append(cancelled, job)
		}
		return nil
	})
	if err != nil {
		return nil, err // the writer may still be at it
	}
	return cancelled, nil
}

// Held counts the jobs of a queue that are held: provider.Delays.
func (d *delays) Held(ctx context.Context, queue string) (provider.Measure[int64], error) {
	scope, found, err := d.scope.find(ctx, d.store)
	if err != nil {
		return provider.Measure[int64]{}, err
	}
	var held int64
	if found {
		_, err = d.store.readRow(ctx, "select held from queue where scope = ? and name = ?", []any{scope, queue}, &held)
	}
	if err != nil {
		return provider.Measure[int64]{}, err
	}
	return provider.Measured(held), nil
}

// Facts describes the delays: provider.Delays.
func (d *delays) Facts() provider.DelayFacts {
	return provider.DelayFacts{Lent: d.scope.lent, Finest: finest, Addressable: true, Countable: true}
}

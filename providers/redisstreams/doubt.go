package redisstreams

import (
	"context"
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// resolve looks again at runs that Redis calls somebody else's though an earlier
// settlement of theirs was on its way when its answer was lost. Where the entry is
// gone, and nobody else can have had it because the lease has not run out since it was
// confirmed, that settlement is on record. Replicas may still lack it.
func (d *desk) resolve(ctx context.Context, list []*settlement, errs []error) {
	var open []int
	for i, st := range list {
		if errors.Is(errs[i], provider.ErrLeaseLost) && st.delivery.mayHaveEnded() {
			open = append(open, i)
		}
	}
	s := d.sub.store
	for _, i := range open {
		l := list[i].delivery.lane
		ended, err := s.link.runSafely(ctx, s.replicas, &s.scripts.ended, []string{l.keys.stream, l.group.groups},
			group, l.queue, list[i].delivery.generation, list[i].delivery.id)
		if len(ended) == 0 && !doubtful(err) || !list[i].delivery.mayHaveEnded() {
			continue // it is somebody else's indeed, or may be
		}
		errs[i] = err // if that is one, it is tried again
	}
}

// mayHaveEnded reports whether an earlier settlement may be on record, and nobody else
// can have had the job since.
func (d *delivery) mayHaveEnded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.doubt && d.kind != endRelease && time.Since(d.confirmed) < d.lane.desk.sub.lease
}

// confirm notes that the lease began at a time, or later.
func (d *delivery) confirm(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.confirmed = at
}

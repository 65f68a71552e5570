package backstage

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/backstage-go/backstage/runtime/provider"
)

// storeLent stores the next jobs of a job that need a lender, but those that are
// carried already. (Its jobs are large on a stack: ack is without them.)
func (b broker) storeLent(ctx context.Context, j *provider.Job, lent []provider.Job, carried carried) error {
	left := carried.missing(lent)
	if len(left) == 0 {
		return nil
	}
	b.makeWay(ctx, j, left)
	var failed []error
	for i, one := range b.put(ctx, left, provider.PublishOptions{Accepted: true}) {
		if one.Outcome == Refused || one.Outcome == Unknown {
			failed = append(failed, fmt.Errorf("next job %s: %w", left[i].ID, cmp.Or(one.Err, errNoReason)))
			continue
		}
		carried[left[i].ID] = true
	}
	return errors.Join(failed...)
}

// makeWay ends the claim of a job that holds it until done, before a next job
// takes the same key.
func (b broker) makeWay(ctx context.Context, j *provider.Job, next []provider.Job) {
	if !j.Dedupe.UntilDone {
		return
	}
	for i := range next {
		if j.Dedupe.Key == next[i].Dedupe.Key && b.Claims != nil {
			_ = b.Claims.Release(ctx, j.Dedupe.Key, j.ID) // the next job is merged into this one otherwise
			return
		}
	}
}

// carried are the ids of jobs that a settlement stores elsewhere first and that
// are stored, over all of its tries.
type carried map[string]bool

// missing returns the jobs that are not stored yet.
func (c carried) missing(jobs []provider.Job) []provider.Job {
	var left []provider.Job
	for i := range jobs {
		if !c[jobs[i].ID] {
			left = append(left, jobs[i])
		}
	}
	return left
}

// lostAfter says in a lost lease that the jobs which went before it are stored.
func lostAfter(err error) error {
	if errors.Is(err, ErrLeaseLost) {
		return &provider.LostError{Stored: Stored}
	}
	return err
}

func (b broker) claimsLent() bool { return b.Claims != nil && b.Claims.Facts().Lent }

func (b broker) delaysLent() bool { return b.Delays != nil && b.Delays.Facts().Lent }

// claimsHere reports whether the claim of a job is a step of its own: because
// the claims are lent, or because the job goes to a lent store first.
func (b broker) claimsHere(j *provider.Job) bool {
	return j.Dedupe.Key != "" && b.Claims != nil && (b.claimsLent() || j.Delay > 0 && b.delaysLent())
}

// split tells next jobs that the provider can store with its ack from those that
// need a lender.
func (b broker) split(jobs []provider.Job) (own, lent []provider.Job) {
	if len(jobs) == 0 || !b.delaysLent() && !b.claimsLent() {
		return jobs, nil
	}
	return b.splitLent(jobs)
}

// splitLent is split where something is lent. What needs a lender is stored before the
// others, so that where one job of an ordering key does, all of that key go with it.
// (Its jobs are large on a stack.)
func (b broker) splitLent(jobs []provider.Job) (own, lent []provider.Job) {
	early := make(map[orderedLine]bool)
	for i := range jobs {
		if b.claimsHere(&jobs[i]) {
			early[lineOf(&jobs[i])] = true
		}
	}
	delete(early, orderedLine{})
	for i := range jobs {
		if b.claimsHere(&jobs[i]) || jobs[i].Delay > 0 && b.delaysLent() || early[lineOf(&jobs[i])] {
			lent = append(lent, jobs[i])
		} else {
			own = append(own, jobs[i])
		}
	}
	return own, lent
}

// orderedLine is the jobs of an ordering key in a queue; zero: those that have none.
type orderedLine struct{ queue, key string }

func lineOf(j *provider.Job) orderedLine {
	if j.OrderingKey == "" {
		return orderedLine{}
	}
	return orderedLine{j.Queue, j.OrderingKey}
}

// put stores jobs: claims first where they are a step of their own, then delayed
// ones with the lender of Delays and the others with the provider.
func (b broker) put(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions) []provider.Stored {
	if !b.delaysLent() && !b.claimsLent() {
		return b.Jobs.Publish(ctx, jobs, opts)
	}
	hold := func(jobs []provider.Job) []provider.Stored { return b.Delays.Hold(ctx, jobs) }
	publish := func(jobs []provider.Job) []provider.Stored { return b.Jobs.Publish(ctx, jobs, opts) }
	return b.claimed(ctx, jobs, func(jobs []provider.Job) []provider.Stored { return b.place(jobs, hold, publish) })
}

// place splits jobs into those that a lent store holds and those that the
// provider takes, and puts the answers back in order.
func (b broker) place(jobs []provider.Job, hold, publish func([]provider.Job) []provider.Stored) []provider.Stored {
	if !b.delaysLent() {
		return publish(jobs)
	}
	stored := make([]provider.Stored, len(jobs))
	var held, ready []provider.Job
	var heldAt, readyAt []int
	for i, job := range jobs {
		if job.Delay > 0 {
			held, heldAt = append(held, job), append(heldAt, i)
		} else {
			ready, readyAt = append(ready, job), append(readyAt, i)
		}
	}
	scatter := func(part []provider.Job, at []int, send func([]provider.Job) []provider.Stored) {
		if len(part) == 0 {
			return
		}
		for i, one := range send(part) {
			stored[at[i]] = one
		}
	}
	scatter(held, heldAt, hold)
	scatter(ready, readyAt, publish)
	return stored
}

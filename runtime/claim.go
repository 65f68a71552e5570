package backstage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	// pendingFor is how long a claim holds whose job is not yet known to be
	// stored, and which is not refreshed because its client died.
	pendingFor = 30 * time.Second
	// pendingPoll is how often a claim that another job has pending is tried.
	pendingPoll = 50 * time.Millisecond
)

// claimed stores jobs whose claims are a step of their own: claim pending, store,
// confirm. A caller told "duplicate" walks away, so that answer is given only for
// a confirmed holder; a pending one is waited for. A crash between store and
// confirm lets the claim run out: it may admit a second copy, and loses none.
func (b broker) claimed(ctx context.Context, jobs []provider.Job, put func([]provider.Job) []provider.Stored) []provider.Stored {
	any := false
	for i := range jobs {
		any = any || b.claimsHere(&jobs[i])
	}
	if !any {
		return put(jobs)
	}
	stored := make([]provider.Stored, len(jobs))
	waiting := make([]int, len(jobs))
	for i := range jobs {
		waiting[i] = i
	}
	for len(waiting) > 0 {
		ready, pending, fresh := b.claimRound(ctx, jobs, waiting, stored)
		ready, pending = b.inOrder(ctx, jobs, ready, pending, fresh)
		stop := b.keepPending(ctx, fresh)
		b.putRound(ctx, jobs, ready, fresh, stored, put)
		stop()
		if len(pending) == len(waiting) && !sleep(ctx, pendingPoll) {
			refuse(jobs, pending, stored, fmt.Errorf("%w: %w", ErrDedupePending, context.Cause(ctx)))
			break
		}
		waiting = pending
	}
	return stored
}

// claimRound claims the keys of the waiting jobs. It answers for those that are
// duplicates or cannot be claimed, and returns those that may be stored and those
// that must wait for another's pending claim, or for an equal key of this batch;
// fresh are the claims, by job, that were not confirmed before: of a job that an
// earlier call stored, the claim is not this call's to give up.
func (b broker) claimRound(ctx context.Context, jobs []provider.Job, waiting []int, stored []provider.Stored) (ready, pending []int, fresh map[int]provider.Claim) {
	var claims []provider.Claim
	var claiming []int
	inRound := make(map[string]bool)
	for _, i := range waiting {
		switch job := &jobs[i]; {
		case !b.claimsHere(job):
			ready = append(ready, i)
		case inRound[job.Dedupe.Key]:
			pending = append(pending, i)
		default:
			inRound[job.Dedupe.Key] = true
			// No refresh makes a claim shorter, so a short window starts short.
			claims = append(claims, provider.Claim{Key: job.Dedupe.Key, Owner: job.ID, For: min(pendingFor, b.claimFor(job))})
			claiming = append(claiming, i)
		}
	}
	if len(claims) == 0 {
		return ready, pending, nil
	}
	holders, err := b.Claims.Claim(ctx, claims)
	if err != nil {
		refuse(jobs, claiming, stored, err)
		return ready, pending, nil
	}
	fresh = make(map[int]provider.Claim)
	for n, i := range claiming {
		switch holder := holders[n]; {
		case holder.Owner == jobs[i].ID:
			ready = append(ready, i)
			if !holder.Confirmed {
				fresh[i] = claims[n]
			}
		case holder.Confirmed:
			stored[i] = provider.Stored{ID: jobs[i].ID, Outcome: Duplicate, Holder: holder.Owner}
		default:
			pending = append(pending, i)
		}
	}
	return ready, pending, fresh
}

// inOrder puts jobs back in their order, and lets those wait that have a pending one of
// their ordering key before them.
func (b broker) inOrder(ctx context.Context, jobs []provider.Job, ready, pending []int, fresh map[int]provider.Claim) (first, later []int) {
	firstPending := make(map[orderedLine]int)
	for _, i := range pending {
		if line := lineOf(&jobs[i]); line != (orderedLine{}) {
			if at, known := firstPending[line]; !known || i < at {
				firstPending[line] = i
			}
		}
	}
	slices.Sort(ready)
	for _, i := range ready {
		at, waits := firstPending[lineOf(&jobs[i])]
		if !waits || i < at {
			first = append(first, i)
			continue
		}
		if claim, ours := fresh[i]; ours {
			_ = b.Claims.Release(ctx, claim.Key, claim.Owner) // it runs out otherwise
			delete(fresh, i)
		}
		pending = append(pending, i)
	}
	slices.Sort(pending)
	return first, pending
}

// keepPending refreshes claims while their jobs are being stored, which takes as
// long as the caller waits where a queue is full. stop ends it.
func (b broker) keepPending(ctx context.Context, claims map[int]provider.Claim) (stop func()) {
	if len(claims) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() {
		for sleep(ctx, pendingFor/3) {
			_, _ = b.Claims.Claim(ctx, slices.Collect(maps.Values(claims))) // they run out otherwise
		}
	})
	return func() {
		cancel()
		keeper.Wait()
	}
}

// putRound stores jobs, and confirms or releases their claims by what became of
// them. An unknown one keeps its claim: the same id may try again.
func (b broker) putRound(ctx context.Context, jobs []provider.Job, ready []int, fresh map[int]provider.Claim, stored []provider.Stored, put func([]provider.Job) []provider.Stored) {
	if len(ready) == 0 {
		return
	}
	batch := make([]provider.Job, len(ready))
	for n, i := range ready {
		batch[n] = jobs[i]
	}
	var confirm []provider.Claim
	for n, one := range put(batch) {
		job := &batch[n]
		stored[ready[n]] = one
		if !b.claimsHere(job) {
			continue
		}
		switch one.Outcome {
		case Stored:
			confirm = append(confirm, provider.Claim{Key: job.Dedupe.Key, Owner: job.ID, Confirmed: true,
				For: b.claimFor(job)})
		case Refused:
			if _, ours := fresh[ready[n]]; ours {
				_ = b.Claims.Release(context.WithoutCancel(ctx), job.Dedupe.Key, job.ID) // it runs out otherwise
			}
		}
	}
	if len(confirm) > 0 {
		// The jobs are stored: a claim that cannot be confirmed only runs out early.
		_, _ = b.Claims.Claim(context.WithoutCancel(ctx), confirm)
	}
}

// claimFor is how long the confirmed claim of a job holds that is stored now.
func (b broker) claimFor(j *provider.Job) time.Duration {
	return claimTTL(j.Dedupe, j.Overrides.MaxAge, j.Delay)
}

// endClaim frees the lent claim of a job that has ended. A crash before it leaves
// the claim to its end.
func (b broker) endClaim(ctx context.Context, j *provider.Job) {
	if j.Dedupe.Key != "" && b.claimsLent() {
		_ = b.Claims.Release(ctx, j.Dedupe.Key, j.ID)
	}
}

// refreshed keeps the claim of a job that holds until done while it runs, and
// while a lender holds it for a delay.
func (b broker) refreshed(ctx context.Context, j *provider.Job, maxAge, delay time.Duration) {
	if ctx.Err() == nil && j.Dedupe.UntilDone && b.Claims != nil && (b.claimsLent() || b.delaysLent()) {
		_, _ = b.Claims.Claim(ctx, []provider.Claim{{Key: j.Dedupe.Key, Owner: j.ID, Confirmed: true,
			For: claimTTL(j.Dedupe, maxAge, delay)}})
	}
}

func refuse(jobs []provider.Job, at []int, stored []provider.Stored, err error) {
	for _, i := range at {
		stored[i] = provider.Stored{ID: jobs[i].ID, Outcome: Refused, Err: err}
	}
}

// claimTTL is how long a confirmed claim holds.
func claimTTL(d provider.Dedupe, maxAge, delay time.Duration) time.Duration {
	if d.UntilDone {
		return 2*min(cmp.Or(maxAge, DefaultMaxAge), maxDelay/2) + delay // no sum of these overflows
	}
	return d.For
}

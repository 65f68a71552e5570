package backstage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// store is a provider with what is lent to it. A provider knows only its own
// capabilities: where Delays or Claims come from elsewhere, the steps before and
// after its own are here, written once.
type store struct{ *provider.Provider }

// publish stores jobs of a client.
func (s store) publish(ctx context.Context, jobs []provider.Job) []provider.Stored {
	stored := s.put(ctx, jobs, provider.PublishOptions{Claimed: s.claimsLent()})
	for i := range stored {
		stored[i].Err = s.named(stored[i].Err)
	}
	return stored
}

// named says what is closed, where an error says no more than that.
func (s store) named(err error) error {
	switch {
	case err != provider.ErrClosed:
		return err
	case s.claimsLent() || s.delaysLent():
		return fmt.Errorf("provider %s, or a store that lends to it, is %w", s.Name, err)
	}
	return fmt.Errorf("provider %s is %w", s.Name, err)
}

// promoted stores jobs that were held and are due.
func (s store) promoted(ctx context.Context, jobs []provider.Job) []provider.Stored {
	return s.Jobs.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
}

// ack ends a delivery. Next jobs that need a lender are stored before it, the
// others with it. It notes those that are in carried: another try of the same does
// not store them again.
func (s store) ack(ctx context.Context, d provider.Delivery, next []provider.Job, carried carried) error {
	own, lent := s.split(next)
	if len(lent) > 0 {
		if err := s.storeLent(ctx, d.Job(), lent, carried); err != nil {
			return err
		}
	}
	err := d.Ack(ctx, own)
	if len(own) == 0 {
		err = lostAfter(err)
	}
	if err == nil && d.Job().Dedupe.UntilDone {
		s.endClaim(ctx, d.Job())
	}
	return err
}

// storeLent stores the next jobs of a job that need a lender, but those that are
// carried already. (Its jobs are large on a stack: ack is without them.)
func (s store) storeLent(ctx context.Context, j *provider.Job, lent []provider.Job, carried carried) error {
	left := carried.missing(lent)
	if len(left) == 0 {
		return nil
	}
	s.makeWay(ctx, j, left)
	var failed []error
	for i, one := range s.put(ctx, left, provider.PublishOptions{Accepted: true}) {
		if one.Outcome == Refused || one.Outcome == Unknown {
			failed = append(failed, fmt.Errorf("next job %s: %w", left[i].ID, first(one.Err, errNoReason)))
			continue
		}
		carried[left[i].ID] = true
	}
	return errors.Join(failed...)
}

// makeWay ends the claim of a job that holds it until done, before a next job
// takes the same key.
func (s store) makeWay(ctx context.Context, j *provider.Job, next []provider.Job) {
	if !j.Dedupe.UntilDone {
		return
	}
	for i := range next {
		if j.Dedupe.Key == next[i].Dedupe.Key {
			s.endClaim(ctx, j)
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

// retry gives a job another run. Once a lender has its copy, it notes it in
// carried, as ack does.
func (s store) retry(ctx context.Context, d provider.Delivery, again provider.Again, carried carried) error {
	again.After = min(again.After, s.longest()) // early is better than never
	if s.retriesAlone(d.Job(), again) {
		return d.Retry(ctx, again)
	}
	if !carried[d.Job().ID] {
		held := s.Delays.Hold(ctx, []provider.Job{d.Job().After(again)})
		if held[0].Outcome != Stored {
			return fmt.Errorf("hold for another run: %w", first(held[0].Err, errNoReason))
		}
		carried[d.Job().ID] = true
	}
	err := d.Ack(ctx, nil)
	if err == nil {
		s.refreshed(ctx, d.Job(), d.Job().Overrides.MaxAge) // the provider's own claim ended with the ack
	}
	return lostAfter(err)
}

// lostAfter says in a lost lease that the jobs which went before it are stored.
func lostAfter(err error) error {
	if errors.Is(err, ErrLeaseLost) {
		return &provider.LostError{Stored: Stored}
	}
	return err
}

// deadLetter gives a job up, and with it its claim, however long that was to hold.
func (s store) deadLetter(ctx context.Context, d provider.Delivery, f provider.Failure) error {
	err := d.DeadLetter(ctx, f)
	if err == nil {
		s.endClaim(ctx, d.Job())
	}
	return err
}

// cancel removes held jobs, and frees their claims, wherever those are.
func (s store) cancel(ctx context.Context, id string) (bool, error) {
	if s.Delays == nil || !s.Delays.Facts().Addressable {
		return false, &MissingError{Provider: s.Name, Capability: "held jobs that are found by id",
			Need: "cancellations", Remedy: "lend it Delays of a store that has them"}
	}
	cancelled, err := s.Delays.Cancel(ctx, id)
	if err != nil {
		return false, s.named(err)
	}
	for i := range cancelled {
		if key := cancelled[i].Dedupe.Key; key != "" && s.Claims != nil {
			_ = s.Claims.Release(ctx, key, id) // it runs out otherwise
		}
	}
	return len(cancelled) > 0, nil
}

// replay returns one dead letter to its queue, its claim first where that is
// lent.
func (s store) replay(ctx context.Context, letter provider.DeadLetter) provider.Stored {
	replay := func([]provider.Job) []provider.Stored {
		stored, err := s.Dead.Replay(ctx, letter.Address)
		if err != nil || len(stored) != 1 {
			return []provider.Stored{{ID: letter.Job.ID, Outcome: Unknown, Err: first(err, errNoReason)}}
		}
		return stored
	}
	if !s.claimsLent() {
		return replay(nil)[0]
	}
	return s.claimed(ctx, []provider.Job{letter.Job}, replay)[0]
}

// retriesAlone reports whether the provider can retry this job by itself.
func (s store) retriesAlone(j *provider.Job, again provider.Again) bool {
	if s.Delays != nil && !s.Delays.Facts().Lent {
		return true
	}
	if again.Why == provider.StartedAgain {
		return true
	}
	switch s.Jobs.Facts().Retries {
	case provider.RetriesAll:
		return true
	case provider.RetriesOrdered:
		return j.OrderingKey != ""
	}
	return false
}

func (s store) claimsLent() bool { return s.Claims != nil && s.Claims.Facts().Lent }
func (s store) delaysLent() bool { return s.Delays != nil && s.Delays.Facts().Lent }

// claimsHere reports whether the claim of a job is a step of its own: because
// the claims are lent, or because the job goes to a lent store first.
func (s store) claimsHere(j *provider.Job) bool {
	return j.Dedupe.Key != "" && s.Claims != nil && (s.claimsLent() || j.Delay > 0 && s.delaysLent())
}

// split tells next jobs that the provider can store with its ack from those that
// need a lender.
func (s store) split(jobs []provider.Job) (own, lent []provider.Job) {
	if len(jobs) == 0 || !s.delaysLent() && !s.claimsLent() {
		return jobs, nil
	}
	return s.splitLent(jobs)
}

// splitLent is split where something is lent. (Its jobs are large on a stack.)
func (s store) splitLent(jobs []provider.Job) (own, lent []provider.Job) {
	for i := range jobs {
		if s.claimsHere(&jobs[i]) || jobs[i].Delay > 0 && s.delaysLent() {
			lent = append(lent, jobs[i])
		} else {
			own = append(own, jobs[i])
		}
	}
	return own, lent
}

// put stores jobs: claims first where they are a step of their own, then delayed
// ones with the lender of Delays and the others with the provider.
func (s store) put(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions) []provider.Stored {
	if !s.delaysLent() && !s.claimsLent() {
		return s.Jobs.Publish(ctx, jobs, opts)
	}
	hold := func(jobs []provider.Job) []provider.Stored { return s.Delays.Hold(ctx, jobs) }
	publish := func(jobs []provider.Job) []provider.Stored { return s.Jobs.Publish(ctx, jobs, opts) }
	return s.claimed(ctx, jobs, func(jobs []provider.Job) []provider.Stored { return s.place(jobs, hold, publish) })
}

// place splits jobs into those that a lent store holds and those that the
// provider takes, and puts the answers back in order.
func (s store) place(jobs []provider.Job, hold, publish func([]provider.Job) []provider.Stored) []provider.Stored {
	if !s.delaysLent() {
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

// check returns what the provider lacks for a task, or for one job of it.
func (s store) check(need Needs) []error {
	if !need.Delay && !need.Dedupe && !need.Order {
		return nil
	}
	var missing []error
	lack := func(capability, what, remedy string) {
		missing = append(missing, &MissingError{Provider: s.Name, Capability: capability, Need: what + " of task " + need.Task, Remedy: remedy})
	}
	if need.Delay && s.Delays == nil {
		lack("Delays", "delayed jobs", s.lendRemedy())
	}
	if need.Dedupe && s.Claims == nil {
		lack("Claims", "dedupe keys", s.lendRemedy())
	}
	switch facts := s.Jobs.Facts(); {
	case !need.Order:
	case !facts.Ordered:
		lack("order per key", "ordering keys", "run the task on a provider that keeps order, or remove its ordering_key")
	case s.delaysLent() && facts.Retries == provider.RetriesNone:
		lack("order per key while its Delays are lent", "ordering keys", "use its own Delays, or remove the task's ordering_key")
	}
	return missing
}

// tooLong returns what the provider lacks for a delay.
func (s store) tooLong(need Needs, delay time.Duration) error {
	longest := s.longest()
	if delay <= longest {
		return nil
	}
	return &MissingError{Provider: s.Name, Capability: fmt.Sprintf("delays beyond %v", longest),
		Need: fmt.Sprintf("jobs of task %s in %v", need.Task, delay), Remedy: s.lendRemedy()}
}

// longest is the longest delay that can be kept.
func (s store) longest() time.Duration {
	if s.Delays == nil {
		return maxDelay
	}
	return first(s.Delays.Facts().Longest, maxDelay)
}

func (s store) lendRemedy() string {
	return fmt.Sprintf("lend it some from a store that has them: p.Delays, p.Claims = store.Lend(%q)", s.Name)
}

// claimTTL is how long a confirmed claim holds.
func claimTTL(d provider.Dedupe, maxAge, delay time.Duration) time.Duration {
	if d.UntilDone {
		return 2*min(first(maxAge, DefaultMaxAge), maxDelay/2) + delay // no sum of these overflows
	}
	return d.For
}

package backstage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// broker is a provider with what is lent to it. A provider knows only its own
// capabilities: where Delays or Claims come from elsewhere, the steps before and
// after its own are here, written once.
type broker struct{ *provider.Provider }

// publish stores jobs of a client.
func (b broker) publish(ctx context.Context, jobs []provider.Job) []provider.Stored {
	stored := b.put(ctx, jobs, provider.PublishOptions{Claimed: b.claimsLent()})
	for i := range stored {
		stored[i].Err = b.named(stored[i].Err)
	}
	return stored
}

// named says what is closed, where an error says no more than that.
func (b broker) named(err error) error {
	switch {
	case err != provider.ErrClosed:
		return err
	case b.claimsLent() || b.delaysLent():
		return fmt.Errorf("provider %s, or a store that lends to it, is %w", b.Name, err)
	}
	return fmt.Errorf("provider %s is %w", b.Name, err)
}

// promoted stores jobs that were held and are due.
func (b broker) promoted(ctx context.Context, jobs []provider.Job) []provider.Stored {
	return b.Jobs.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
}

// ack ends a delivery. Next jobs that need a lender are stored before it, the
// others with it. It notes those that are in carried: another try of the same does
// not store them again.
func (b broker) ack(ctx context.Context, d provider.Delivery, next []provider.Job, carried carried) error {
	own, lent := b.split(next)
	if len(lent) > 0 {
		if err := b.storeLent(ctx, d.Job(), lent, carried); err != nil {
			return err
		}
	}
	err := d.Ack(ctx, own)
	if len(own) == 0 {
		err = lostAfter(err)
	}
	if onRecord(err) && d.Job().Dedupe.UntilDone {
		b.endClaim(ctx, d.Job())
	}
	return err
}

// onRecord reports whether a settlement is on record: by this try, or by an earlier one
// whose answer got lost.
func onRecord(err error) bool { return err == nil || errors.Is(err, provider.ErrSettled) }

// retry gives a job another run. Once a lender has its copy, it notes it in
// carried, as ack does.
func (b broker) retry(ctx context.Context, d provider.Delivery, again provider.Again, maxAge time.Duration, carried carried) error {
	again.After = min(again.After, b.longest()) // early is better than never
	if b.retriesAlone(d.Job(), again) {
		return d.Retry(ctx, again)
	}
	var due time.Time
	if !carried[d.Job().ID] {
		due = time.Now().Add(again.After)
		held := b.Delays.Hold(ctx, []provider.Job{d.Job().After(again)})
		if held[0].Outcome != Stored {
			return fmt.Errorf("hold for another run: %w", cmp.Or(held[0].Err, errNoReason))
		}
		carried[d.Job().ID] = true
	}
	err := d.Ack(ctx, nil)
	if err == nil && !b.claimsLent() {
		// The provider's own claim ended with the ack. Once the copy is due it may have run
		// to its end, and nobody would free what is taken then; it takes its claim itself.
		within, cancel := context.WithDeadline(ctx, due)
		b.refreshed(within, d.Job(), maxAge, again.After)
		cancel()
	}
	return lostAfter(err)
}

// deadLetter gives a job up, and with it its claim, however long that was to hold.
func (b broker) deadLetter(ctx context.Context, d provider.Delivery, f provider.Failure) error {
	err := d.DeadLetter(ctx, f)
	if onRecord(err) {
		b.endClaim(ctx, d.Job())
	}
	return err
}

// cancel removes held jobs, and frees their claims, wherever those are.
func (b broker) cancel(ctx context.Context, id string) (bool, error) {
	if b.Delays == nil || !b.Delays.Facts().Addressable {
		return false, &MissingError{Provider: b.Name, Capability: "held jobs that are found by id",
			Need: "cancellations", Remedy: "lend it Delays of a store that has them"}
	}
	cancelled, err := b.Delays.Cancel(ctx, id)
	if err != nil {
		return false, b.named(err)
	}
	for i := range cancelled {
		if key := cancelled[i].Dedupe.Key; key != "" && b.Claims != nil {
			_ = b.Claims.Release(ctx, key, id) // it runs out otherwise
		}
	}
	return len(cancelled) > 0, nil
}

// replay returns one dead letter to its queue, its claim first where that is
// lent.
func (b broker) replay(ctx context.Context, letter provider.DeadLetter) provider.Stored {
	replay := func([]provider.Job) []provider.Stored {
		stored, err := b.Dead.Replay(ctx, letter.Address)
		if err != nil || len(stored) != 1 {
			return []provider.Stored{{ID: letter.Job.ID, Outcome: Unknown, Err: cmp.Or(err, errNoReason)}}
		}
		return stored
	}
	if !b.claimsLent() {
		return replay(nil)[0]
	}
	return b.claimed(ctx, []provider.Job{letter.Job}, replay)[0]
}

// retriesAlone reports whether the provider can retry this job by itself.
func (b broker) retriesAlone(j *provider.Job, again provider.Again) bool {
	if b.Delays != nil && !b.Delays.Facts().Lent {
		return true
	}
	if again.Why == provider.StartedAgain {
		return true
	}
	switch b.Jobs.Facts().Retries {
	case provider.RetriesAll:
		return true
	case provider.RetriesOrdered:
		return j.OrderingKey != ""
	}
	return false
}

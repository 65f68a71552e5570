package providertest

import (
	"context"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func dedupeChecks() []check {
	return append(claimEndChecks(), []check{
		{
			name:  "dedupe/window",
			rule:  "Publish takes the claim of a job with a Dedupe key in the same step and answers OutcomeDuplicate, with the holder, for a key that another id holds; the duplicate is not stored.",
			needs: []need{needOwnClaims},
			run:   dedupeWindow,
		}, {
			name:  "dedupe/window ends",
			rule:  "Dedupe.For is how long the claim holds from enqueue, whether the job is done or not, and no longer.",
			needs: []need{needOwnClaims},
			run:   dedupeWindowEnds,
		}, {
			name:  "dedupe/own id",
			rule:  "A claim that the job's own id holds is no obstacle.",
			needs: []need{needOwnClaims},
			run:   dedupeOwnID,
		}, {
			name:  "dedupe/in one call",
			rule:  "Of jobs of one call with one key the first is stored and the others are its duplicates.",
			needs: []need{needOwnClaims},
			run:   dedupeCall,
		}, {
			name:  "dedupe/many at once",
			rule:  "Of many that publish one key at once one is stored; the others are told its id.",
			needs: []need{needOwnClaims},
			run:   dedupeMany,
		}, {
			name:  "dedupe/next",
			rule:  "A next job whose dedupe key another job holds counts as stored, and is not; otherwise it takes the claim.",
			needs: []need{needOwnClaims},
			run:   dedupeNext,
		}, {
			name:  "dedupe/next of the same key",
			rule:  "A claim of this job that holds until done ends before, so that a next job may have the same key.",
			needs: []need{needOwnClaims},
			run:   dedupeNextSame,
		}, {
			name:  "dedupe/held",
			rule:  "A job that Publish holds has its claim from the start.",
			needs: []need{needOwnClaims, needOwnDelays},
			run:   dedupeHeld,
		}, {
			name:  "dedupe/refused takes none",
			rule:  "A job that is refused leaves no claim behind.",
			needs: []need{needOwnClaims, needBound},
			run:   dedupeRefused,
		}, {
			name:  "dedupe/replay",
			rule:  "A replayed job takes its claim again; if another job holds it, the answer is OutcomeDuplicate and the dead letter stays.",
			needs: []need{needOwnClaims, needDead},
			run:   dedupeReplay,
		}, {
			name:  "dedupe/claimed elsewhere",
			rule:  "PublishOptions.Claimed and Accepted say that no claim is taken: the key's holder is no obstacle.",
			needs: []need{needClaims},
			run:   dedupeClaimed,
		},
	}...)
}

// claimEndChecks are about what ends the claim of a job, and what does not.
func claimEndChecks() []check {
	return []check{
		{
			name:  "dedupe/until done",
			rule:  "UntilDone holds the claim until the job is acknowledged, through retries and releases.",
			needs: []need{needOwnClaims},
			run:   dedupeUntilDone,
		}, {
			name:  "dedupe/until done outlives a crash",
			rule:  "UntilDone holds the claim of a job whose worker died until another has run it.",
			needs: []need{needOwnClaims, needCrash},
			run:   dedupeCrash,
		}, {
			name:  "dedupe/dead frees",
			rule:  "DeadLetter frees the job's own claim, and no other's.",
			needs: []need{needOwnClaims},
			run:   dedupeDead,
		}, {
			name:  "dedupe/cancel frees",
			rule:  "Cancel frees the claims of the jobs that it removes where those are in the same store, and no other's.",
			needs: []need{needOwnClaims, needOwnDelays, needAddressable},
			run:   dedupeCancel,
		}, {
			name:  "dedupe/refused again",
			rule:  "A claim is its owner's: when a job is on record, a refusal of the same id does not free it.",
			needs: []need{needOwnClaims, needBound},
			run:   dedupeRefusedAgain,
		},
	}
}

// duplicate publishes a job and checks that it is a duplicate of another.
func (t *env) duplicate(what string, j provider.Job, holder string) {
	t.Helper()
	s := t.tryPublish(t.p, j)[0]
	if s.Outcome != provider.OutcomeDuplicate || s.Holder != holder {
		t.Errorf("%s: %s (holder %q, error %v); want duplicate of %q", what, s.Outcome, s.Holder, s.Err, holder)
	}
}

func dedupeWindow(t *env) {
	first := t.job(work, deduped("order/1", time.Hour))
	t.publish(t.p, first)
	t.duplicate("a second job with the key", t.job(work, deduped("order/1", time.Hour)), first.ID)
	t.duplicate("one of another queue", t.job(other, deduped("order/1", time.Hour)), first.ID)
	t.publish(t.p, t.job(work, deduped("order/2", time.Hour)))
	w := t.subscribe(t.p, 5, work, other)
	t.ack(w.receive(2)...)
	w.nothing("duplicates are not stored")
	t.duplicate("one after the first is done", t.job(work, deduped("order/1", time.Hour)), first.ID)
}

func dedupeWindowEnds(t *env) {
	const window = 2 * time.Second
	start := time.Now()
	t.publish(t.p, t.job(work, deduped("order/1", window)))
	var s provider.Stored
	t.until("the key is free again", func() bool {
		s = t.tryPublish(t.p, t.job(work, deduped("order/1", time.Hour)))[0]
		return s.Outcome != provider.OutcomeDuplicate
	})
	t.outcome("a job after the window", s, provider.OutcomeStored)
	if held := time.Since(start); held < window {
		t.Errorf("a claim for %v held for %v", window, held)
	}
}

func dedupeOwnID(t *env) {
	j := t.job(work, deduped("order/1", time.Hour))
	t.publish(t.p, j)
	t.publish(t.p, j)
}

func dedupeCall(t *env) {
	jobs := t.some(3, work, untilDone("order/1"))
	stored := t.tryPublish(t.p, append(jobs, t.job(work))...)
	t.outcome("the first of a call", stored[0], provider.OutcomeStored)
	for _, s := range stored[1:3] {
		t.outcome("one of the key in the same call", s, provider.OutcomeDuplicate)
		if s.Holder != jobs[0].ID {
			t.Errorf("its holder is %q; want %q", s.Holder, jobs[0].ID)
		}
	}
	t.outcome("one without a key", stored[3], provider.OutcomeStored)
	w := t.subscribe(t.p, 5, work)
	t.ack(w.receive(2)...)
	w.nothing("duplicates are not stored")
}

func dedupeMany(t *env) {
	const callers = 40
	p2 := t.open()
	answers := make([]provider.Stored, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			p := t.p
			if i%2 == 1 {
				p = p2
			}
			answers[i] = t.tryOne(p, t.job(work, deduped("order/1", time.Hour)))
		})
	}
	wg.Wait()
	winner := ""
	for _, s := range answers {
		if s.Outcome == provider.OutcomeStored {
			if winner != "" {
				t.Errorf("%s and %s were stored; want one", winner, s.ID)
			}
			winner = s.ID
		}
	}
	for _, s := range answers {
		if s.ID != winner && (s.Outcome != provider.OutcomeDuplicate || s.Holder != winner) {
			t.Errorf("%s: %s (holder %q, error %v); want duplicate of %q", s.ID, s.Outcome, s.Holder, s.Err, winner)
		}
	}
	w := t.subscribe(t.p, 5, work)
	t.ack(w.one())
	w.nothing("duplicates are not stored")
}

// tryOne publishes one job from any goroutine.
func (t *env) tryOne(p *provider.Provider, j provider.Job) provider.Stored {
	ctx, cancel := t.ctx()
	defer cancel()
	stored := p.Jobs.Publish(ctx, []provider.Job{j}, provider.PublishOptions{})
	if len(stored) != 1 {
		t.Errorf("Publish of one job gave %d answers", len(stored))
		return provider.Stored{ID: j.ID}
	}
	return stored[0]
}

func dedupeUntilDone(t *env) {
	t.promoteOwn()
	first := t.job(work, untilDone("order/1"))
	t.publish(t.p, first)
	duplicate := func(when string) {
		t.Helper()
		t.duplicate(when, t.job(work, untilDone("order/1")), first.ID)
	}
	duplicate("while it waits")
	w := t.subscribe(t.p, 1, work)
	d := w.one()
	duplicate("while it runs")
	if t.retries(false) {
		t.retry(d, provider.Again{Why: provider.FailedAgain, After: time.Second, Failure: failure(1)})
		duplicate("while it waits for a retry")
		d = w.one()
	}
	t.release(d)
	duplicate("when it is released")
	w.end()
	w = t.subscribe(t.p, 1, work)
	t.ack(w.one())
	t.publish(t.p, t.job(work, untilDone("order/1")))
	t.ack(w.one())
	w.nothing("duplicates are not stored")
}

func dedupeCrash(t *env) {
	first := t.job(work, untilDone("order/1"))
	t.publish(t.p, first)
	doomed := t.open()
	t.subscribeFor(doomed, t.h.Lease, 1, work).one()
	t.die(doomed)
	d := t.subscribe(t.p, 1, work).one()
	t.duplicate("after a crash", t.job(work, untilDone("order/1")), first.ID)
	t.ack(d)
	t.publish(t.p, t.job(work, untilDone("order/1")))
}

func dedupeDead(t *env) {
	t.publish(t.p, t.job(work, untilDone("order/1")), t.job(work, deduped("order/2", time.Hour)))
	bystander := t.job(other, untilDone("order/3"))
	t.publish(t.p, bystander)
	for _, d := range t.subscribe(t.p, 2, work).receive(2) {
		t.deadLetter(d, failure(1))
	}
	t.publish(t.p, t.job(work, untilDone("order/1")), t.job(work, deduped("order/2", time.Hour)))
	t.duplicate("another job's key", t.job(work, untilDone("order/3")), bystander.ID)
}

func dedupeNext(t *env) {
	holder := t.job(other, untilDone("order/1"))
	t.publish(t.p, holder, t.job(work))
	w := t.subscribe(t.p, 5, work)
	merged, taken := t.job(work, untilDone("order/1")), t.job(work, untilDone("order/2"))
	t.ackWith(w.one(), merged, taken)
	d := w.one()
	if d.Job().ID != taken.ID {
		t.Errorf("%s was delivered; want the next job whose key was free", d.Job().ID)
	}
	w.nothing("a next job whose key is held is not stored")
	t.duplicate("a key that a next job took", t.job(work, untilDone("order/2")), taken.ID)
	t.ack(d)
	t.publish(t.p, t.job(work, untilDone("order/2")))
}

func dedupeNextSame(t *env) {
	t.publish(t.p, t.job(work, untilDone("page")))
	w := t.subscribe(t.p, 1, work)
	for range 2 {
		next := t.job(work, untilDone("page"))
		t.ackWith(w.one(), next)
		t.duplicate("a key that a next job took over", t.job(work, untilDone("page")), next.ID)
	}
	t.ack(w.one())
	t.publish(t.p, t.job(work, untilDone("page")))
}

func dedupeHeld(t *env) {
	j := t.job(work, untilDone("order/1"), delayed(time.Hour))
	t.publish(t.p, j)
	t.duplicate("a key of a held job", t.job(work, untilDone("order/1")), j.ID)
}

func dedupeCancel(t *env) {
	j, bystander := t.job(work, untilDone("order/4"), delayed(time.Hour)), t.job(work, untilDone("order/5"), delayed(time.Hour))
	t.publish(t.p, j, bystander, t.job(work))
	if !t.cancel(t.p, j.ID) {
		t.Errorf("Cancel of a held job found nothing")
	}
	t.outcome("Publish with the key of a job that was cancelled", t.tryPublish(t.p, t.job(work, untilDone("order/4")))[0], provider.OutcomeStored)
	t.duplicate("the key of another held job", t.job(work, untilDone("order/5")), bystander.ID)
}

func dedupeRefusedAgain(t *env) {
	t.bound(1)
	j := t.job(work, untilDone("order/6"))
	t.publish(t.p, j)
	t.outcome("the same job when there is no room", t.publishShortly(t.p, j)[0], provider.OutcomeRefused)
	t.duplicate("another job with the key", t.job(other, untilDone("order/6")), j.ID)
}

func dedupeRefused(t *env) {
	t.bound(1)
	t.publish(t.p, t.job(work))
	t.outcome("a job that finds no room", t.publishShortly(t.p, t.job(work, untilDone("order/1")))[0], provider.OutcomeRefused)
	t.publish(t.p, t.job(other, untilDone("order/1")))
}

func dedupeReplay(t *env) {
	die := func(key string) (id, address string) {
		j := t.job(work, untilDone(key))
		t.publish(t.p, j)
		w := t.subscribe(t.p, 1, work)
		t.deadLetter(w.one(), failure(1))
		w.end()
		return j.ID, t.letters(t.p, provider.DeadFilter{JobID: j.ID})[0].Address
	}
	id, address := die("order/1")
	t.outcome("Replay of a job whose key is free", t.replay(t.p, address)[0], provider.OutcomeStored)
	t.duplicate("a key that a replay took", t.job(work, untilDone("order/1")), id)
	w := t.subscribe(t.p, 1, work)
	t.ack(w.one())
	w.end()

	_, address = die("order/2")
	holder := t.job(other, untilDone("order/2"))
	t.publish(t.p, holder)
	s := t.replay(t.p, address)[0]
	if s.Outcome != provider.OutcomeDuplicate || s.Holder != holder.ID {
		t.Errorf("Replay of a job whose key another holds: %s (holder %q, error %v); want duplicate of %q", s.Outcome, s.Holder, s.Err, holder.ID)
	}
	ctx, cancel := t.ctx()
	defer cancel()
	if _, err := t.p.Dead.Get(ctx, address); err != nil {
		t.Errorf("Get of a dead letter whose replay was a duplicate: %v; want it to stay", err)
	}
	t.ack(t.subscribe(t.p, 1, other).one())
	t.outcome("Replay when the key is free", t.replay(t.p, address)[0], provider.OutcomeStored)
}

func dedupeClaimed(t *env) {
	publish := func(opts provider.PublishOptions) {
		t.Helper()
		ctx, cancel := t.ctx()
		defer cancel()
		t.stored("Publish of a claimed job", t.p.Jobs.Publish(ctx, t.some(1, work, deduped("order/1", time.Hour)), opts))
	}
	if t.round == own {
		t.publish(t.p, t.job(work, deduped("order/1", time.Hour)))
	} else {
		publish(provider.PublishOptions{Claimed: true})
	}
	publish(provider.PublishOptions{Claimed: true})
	publish(provider.PublishOptions{Accepted: true})
	w := t.subscribe(t.p, 3, work)
	t.once(w.receive(3))
	if t.round == own {
		return
	}
	holders := t.claim(t.p, provider.Claim{Key: "order/1", Owner: "nobody yet", For: time.Hour})
	if holders[0].Owner != "nobody yet" {
		t.Errorf("a publish of claimed jobs claimed for %q in a store that is lent", holders[0].Owner)
	}
}

// cancel cancels held jobs.
func (t *env) cancel(p *provider.Provider, id string) bool {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	cancelled, err := p.Delays.Cancel(ctx, id)
	if err != nil {
		t.Fatalf("Cancel of %s: %v", id, err)
	}
	for _, j := range cancelled {
		if j.ID != id {
			t.Errorf("Cancel of %s removed job %s", id, j.ID)
		}
	}
	return len(cancelled) > 0
}

// claim claims keys.
func (t *env) claim(p *provider.Provider, claims ...provider.Claim) []provider.Holder {
	t.Helper()
	return t.claimOn(p.Claims, claims...)
}

func (t *env) claimOn(c provider.Claims, claims ...provider.Claim) []provider.Holder {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), t.patience)
	defer cancel()
	holders, err := c.Claim(ctx, claims)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	if len(holders) != len(claims) {
		t.Fatalf("Claim of %d keys gave %d holders", len(claims), len(holders))
	}
	return holders
}

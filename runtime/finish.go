package backstage

import (
	"context"
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// returned notes that a handler has returned.
func (s *shift) returned(e *execution, end ending, started time.Time) {
	s.mu.Lock()
	e.handling = false
	if s.suspect == e {
		s.suspect = nil
	}
	if e.stuck {
		e.stuck = false
		s.stuck--
	}
	s.mu.Unlock()
	now := time.Now()
	took, late := now.Sub(started), !now.Before(e.deadline)
	s.logEnd(e, end, took, late)
	if s.cfg.Observer != nil {
		s.observeEnd(e, end, took, late)
	}
}

func (s *shift) observeEnd(e *execution, end ending, took time.Duration, late bool) {
	event := RunEnded{Job: e.run.Info(), Result: end.how.result(), Err: end.err, Took: took, Late: late}
	if end.how == skipped {
		event.Reason, event.Guard, event.Err = end.err.Error(), end.guard, nil
	}
	s.cfg.Observer(event)
}

// finish ends a delivery's time with this worker: by its ending to a settlement.
func (s *shift) finish(e *execution, end ending) {
	if end.how == done {
		if end.next, end.err = s.children(e); end.err != nil {
			end.how = invalidNext
		}
	}
	if end.how == leaseLost && !e.isLost.Load() {
		end.how = stopped // only doubted: if it is ours all the same, others may have it now
	}
	s.conclude(e, settle(end, settling{job: e.job, policy: e.policy, now: time.Now(), worker: s.cfg.Name}))
}

// conclude settles a delivery and ends its time with this worker.
func (s *shift) conclude(e *execution, st settlement) {
	s.leaveSlot(e)
	err := s.apply(e, st)
	switch {
	case err == nil:
		s.settled(e, st)
	case !errors.Is(err, ErrLeaseLost):
		s.cutOff.Add(1)
	}
	if after, ok := s.afterwards(st, err); ok {
		e.after, e.afterOK = after, true // read by who waits for ended
		if err != nil || !s.facts.Confirmed {
			s.recent.put(e.key, e.job.Counters.Stamp(), after, time.Now())
		}
	}
	s.leave(e)
}

// apply settles a delivery, again and again while its lease holds. It returns nil
// when the settlement is on record.
func (s *shift) apply(e *execution, st settlement) error {
	if st.verb == verbLeave {
		return &provider.LostError{Stored: Refused}
	}
	tries := int32(0)
	defer func() {
		if tries > 0 {
			s.trouble("settle job "+e.job.ID, nil)
		}
	}()
	for ; ; tries++ {
		if e.isLost.Load() {
			s.endedEarlier(e, st, tries)
			return &provider.LostError{Stored: s.carriedBy(e, st, tries > 0)}
		}
		err := s.send(e, st)
		switch {
		case err == nil, errors.Is(err, provider.ErrSettled):
			return nil
		case errors.Is(err, ErrLeaseLost):
			s.lose(e)
			s.endedEarlier(e, st, tries)
			return err
		}
		s.settlementFailed(e, st.verb.settlement(), err)
		if errors.Is(err, provider.ErrClosed) || !sleep(s.settling, growing(20*time.Millisecond, 2*time.Second, tries)) {
			return err
		}
	}
}

// endedEarlier frees the claim of a job that is no longer ours, perhaps because an
// earlier try ended it whose answer got lost: nobody else would.
func (s *shift) endedEarlier(e *execution, st settlement, tries int32) {
	if tries > 0 && (st.verb == verbDead || st.verb == verbAck && e.job.Dedupe.UntilDone) {
		s.broker.endClaim(s.settlingSoon(), e.job)
	}
}

// settlementFailed tells of a try that failed.
func (s *shift) settlementFailed(e *execution, what Settlement, err error) {
	s.observe(SettlementFailed{Job: s.info(e), Settlement: what, Err: err})
	s.cfg.Logger.Warn("a settlement failed; it is tried again while the lease holds and the worker runs",
		"job", e.job.ID, "task", e.job.Task, "settlement", what, "error", err)
	s.trouble("settle job "+e.job.ID, err)
}

// carriedBy is what is known of the jobs that a settlement carries which was
// tried, or not.
func (s *shift) carriedBy(e *execution, st settlement, tried bool) Outcome {
	own, lent := s.broker.split(st.next)
	if st.verb == verbRetry {
		lent = []provider.Job{*e.job}
	}
	switch {
	case len(own) == 0 && len(lent) > 0 && len(e.carried.missing(lent)) == 0:
		return Stored
	case tried:
		return Unknown
	}
	return Refused
}

// send is one try of a settlement.
func (s *shift) send(e *execution, st settlement) error {
	ctx := s.settlingSoon()
	if e.carried == nil && (s.broker.delaysLent() || s.broker.claimsLent()) {
		e.carried = make(carried)
	}
	switch st.verb {
	case verbAck:
		return s.broker.ack(ctx, e.delivery, st.next, e.carried)
	case verbRetry:
		return s.broker.retry(ctx, e.delivery, *st.again, e.policy.MaxAge, e.carried)
	case verbDead:
		return s.broker.deadLetter(ctx, e.delivery, *st.failure)
	default:
		return e.delivery.Release(ctx)
	}
}

// settlingSoon returns the context of a settlement that begins now. It ends after a
// lease or a little earlier: those that begin within an eighth of a lease share one,
// because one for each is dear beside a short job.
func (s *shift) settlingSoon() context.Context {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.soon == nil || now.Sub(s.soonFrom) > s.cfg.Lease/8 {
		s.soonFrom = now
		s.soon, s.cancelSoon = context.WithTimeout(s.settling, s.cfg.Lease)
	}
	return s.soon
}

// afterwards returns what a redelivery of the same state is to get in place of a
// run, now that a settlement succeeded or did not.
func (s *shift) afterwards(st settlement, err error) (after settlement, ok bool) {
	switch {
	case st.verb == verbRelease || st.verb == verbLeave:
		return settlement{}, false
	case err == nil || lostButStored(err):
		return settlement{verb: verbAck}, true
	case st.verb == verbAck, st.verb == verbDead && st.failure.Class == provider.ClassPermanent:
		return st, true
	}
	return settlement{}, false
}

func lostButStored(err error) bool {
	var lost *provider.LostError
	return errors.As(err, &lost) && lost.Stored == Stored
}

// settled reports what became of a delivery.
func (s *shift) settled(e *execution, st settlement) {
	s.logSettled(e, st)
	if s.cfg.Observer != nil {
		s.observeSettled(e, st)
	}
}

func (s *shift) observeSettled(e *execution, st settlement) {
	event := JobSettled{Job: s.info(e), Settlement: st.verb.settlement(), Next: len(st.next)}
	switch st.verb {
	case verbRetry:
		event.Why, event.After, event.Failure = st.again.Why, st.again.After, st.again.Failure
	case verbDead:
		event.Failure = *st.failure
	}
	s.cfg.Observer(event)
}

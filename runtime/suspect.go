package backstage

import "github.com/backstage-go/backstage/runtime/provider"

// A job whose workers died twice is a suspect. A worker runs one suspect at a
// time, and only while it holds no other: so a job that kills its process
// convicts itself, and those that ran beside it are run again.
const (
	// suspectCrashes makes a job a suspect where crashes are exact.
	suspectCrashes = 2
	// suspectRedeliveries makes it one where they are an upper bound.
	suspectRedeliveries = 5
)

// suspected reports whether a job is a suspect by its crashes.
func (s *shift) suspected(c provider.Counters) bool {
	if s.facts.ExactCrashes {
		return c.Crashes >= suspectCrashes
	}
	return c.Crashes >= suspectRedeliveries
}

// convict decides about a job that is not to be run because of its crashes. Where
// those are an upper bound, only starts that were put on record beforehand
// convict, and a suspect that comes without one is to have its start recorded.
func (s *shift) convict(c provider.Counters) (end ending, decided bool) {
	guilty := ending{how: crashed, err: errCrashed}
	switch {
	case s.facts.ExactCrashes:
		return guilty, c.Crashes >= MaxCrashes
	case !s.suspected(c) || c.RecordedStart():
		return ending{}, false
	case c.Starts >= MaxCrashes:
		return guilty, true
	}
	return ending{how: startUnknown}, true
}

// alone lets a suspect run if no other does, once the others that arrived beside
// it have been put aside: whatever a dying process holds counts one more crash.
func (s *shift) alone(e *execution) (end ending, run bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspect != nil {
		return ending{how: suspectWaits, err: errWaits}, false
	}
	s.suspect = e
	for s.suspects > 1 && s.handlers.Err() == nil {
		e.waited = true
		s.fewer.Wait()
	}
	switch {
	case e.isLost.Load(): // while it waited
		return ending{how: leaseLost}, false
	case s.handlers.Err() != nil:
		return ending{how: stopped}, false
	}
	return ending{}, true
}

// countSuspect notes that a delivery is here, if it is a suspect. The caller has
// the lock.
func (s *shift) countSuspect(e *execution) {
	if !e.suspect && s.suspected(e.job.Counters) {
		e.suspect = true
		s.suspects++
	}
}

// uncountSuspect notes that a suspect is no longer here. The caller has the lock.
func (s *shift) uncountSuspect(e *execution) {
	if e.suspect {
		e.suspect = false
		s.suspects--
		s.fewer.Broadcast()
	}
}

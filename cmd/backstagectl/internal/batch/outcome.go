package batch

import (
	"errors"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Outcome is what became of a letter.
type Outcome string

// The outcomes. The first three are final; a letter with another one is tried again
// when its journal is run again.
const (
	Replayed  Outcome = "replayed"
	Discarded Outcome = "discarded"
	// Gone: it is no longer there. Somebody else, or a run that was cut off before it
	// could write it down, has replayed or discarded it.
	Gone Outcome = "gone"
	// Duplicate: it stays, because another job holds its dedupe key.
	Duplicate Outcome = "duplicate"
	// Refused: it stays.
	Refused Outcome = "refused"
	// Unknown: it may be replayed, or discarded, or not.
	Unknown Outcome = "unknown"
	// Untried: the run ended before its turn.
	Untried Outcome = "untried"
)

// Final reports whether nothing remains to be done.
func (o Outcome) Final() bool { return o == Replayed || o == Discarded || o == Gone }

// Result is what became of one letter.
type Result struct {
	Address string  `json:"address"`
	Outcome Outcome `json:"outcome"`
	// Holder is the job that holds the key, for Duplicate.
	Holder string `json:"holder,omitempty"`
	// Error says why, for Refused and Unknown.
	Error string `json:"error,omitempty"`
}

// resultOf reads a provider's answer.
func resultOf(action Action, address string, s provider.Stored) Result {
	r := Result{Address: address, Outcome: Unknown}
	if s.Err != nil {
		r.Error = s.Err.Error()
	}
	switch s.Outcome {
	case provider.OutcomeStored:
		r.Outcome = action.Done()
	case provider.OutcomeDuplicate:
		r.Outcome, r.Holder = Duplicate, s.Holder
	case provider.OutcomeRefused:
		r.Outcome = Refused
		if errors.Is(s.Err, provider.ErrNotFound) {
			r.Outcome, r.Error = Gone, ""
		}
	}
	return r
}

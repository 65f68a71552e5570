package run

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/backstage-go/backstage/runtime/provider"
)

// publisher stores jobs as it is told, by their ids, and notes what it was given.
type publisher struct {
	provider.Jobs
	outcomes map[string]provider.Outcome
	given    []string
}

func (p *publisher) Publish(_ context.Context, jobs []provider.Job, opts provider.PublishOptions) []provider.Stored {
	stored := make([]provider.Stored, len(jobs))
	for i, j := range jobs {
		p.given = append(p.given, j.ID)
		stored[i] = provider.Stored{ID: j.ID, Outcome: p.outcomes[j.ID], Err: errors.New("not now")}
		if !opts.Accepted {
			stored[i].Outcome = provider.OutcomeRefused
		}
	}
	return stored
}

func TestWhatIsStoredIsNotStoredAgain(t *testing.T) {
	next := []provider.Job{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	var r Run
	for _, try := range []struct {
		b, c  provider.Outcome
		given []string
		all   provider.Outcome
	}{
		{provider.OutcomeRefused, provider.OutcomeRefused, []string{"a", "b", "c"}, provider.OutcomeUnknown},
		{provider.OutcomeStored, provider.OutcomeRefused, []string{"b", "c"}, provider.OutcomeUnknown},
		{provider.OutcomeStored, provider.OutcomeStored, []string{"c"}, provider.OutcomeStored},
		{provider.OutcomeStored, provider.OutcomeStored, nil, provider.OutcomeStored},
	} {
		p := publisher{outcomes: map[string]provider.Outcome{"a": provider.OutcomeStored, "b": try.b, "c": try.c}}
		err := r.Carry(t.Context(), &p, next)
		if (err == nil) != (try.all == provider.OutcomeStored) {
			t.Errorf("with %+v: %v", try, err)
		}
		if !slices.Equal(p.given, try.given) || r.cargo.stored() != try.all {
			t.Errorf("with %+v: stored %v, all of it %s", try, p.given, r.cargo.stored())
		}
	}
}

func TestADoubtStays(t *testing.T) {
	var r Run
	if r.cargo.stored() != provider.OutcomeRefused {
		t.Errorf("of nothing: %s; want refused", r.cargo.stored())
	}
	r.cargo.left(1)
	r.cargo.note(0, provider.OutcomeUnknown)
	r.cargo.note(0, provider.OutcomeStored)
	if r.cargo.stored() != provider.OutcomeUnknown {
		t.Errorf("after a try in doubt: %s; want unknown, because there may be two", r.cargo.stored())
	}
}

package backstage

import (
	"context"
	"errors"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Replay returns dead letters of a provider to their queues, by their addresses,
// and says for each what became of it. A job keeps its id; its counters start
// again. A job with a dedupe key takes its claim again; if another job holds it,
// the receipt says Duplicate with that job's id, and the dead letter stays. A
// replay that is cut off leaves no job out of both places; replaying again is
// safe, and runs a job twice, under its one id, at worst. The error joins the
// *EnqueueError of each that was not replayed or may not be, with its address.
func Replay(ctx context.Context, p *provider.Provider, addresses ...string) ([]Receipt, error) {
	if p == nil {
		return nil, errors.New("replay: the provider is nil")
	}
	if p.Dead == nil {
		return nil, &MissingError{Provider: p.Name, Capability: "dead letters", Need: "replays", Remedy: "use a provider that keeps them"}
	}
	jobs := make([]provider.Job, len(addresses))
	stored := make([]provider.Stored, len(addresses))
	for i, address := range addresses {
		letter, err := p.Dead.Get(ctx, address)
		if err != nil {
			stored[i] = provider.Stored{Outcome: Refused, Err: broker{p}.named(err)}
			continue
		}
		jobs[i] = letter.Job
		stored[i] = broker{p}.replay(ctx, letter)
		stored[i].Err = broker{p}.named(stored[i].Err)
	}
	return receiptsOf(jobs, stored, addresses...)
}

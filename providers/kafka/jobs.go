package kafka

import (
	"context"
	"slices"
	"sync"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Facts describes what the broker does: provider.Jobs.
func (s *store) Facts() provider.JobFacts {
	return provider.JobFacts{
		Death:        provider.Session,
		Confirmed:    true,
		RefusesLate:  true,
		ExactCrashes: true,
		Retries:      provider.RetriesOrdered,
		Ordered:      true,
		Durable:      true,
	}
}

// Publish stores jobs: provider.Jobs. Kafka has no bounds and keeps no claims, so that
// it makes no difference where they come from.
func (s *store) Publish(ctx context.Context, jobs []provider.Job, _ provider.PublishOptions) []provider.Stored {
	results := make([]provider.Stored, len(jobs))
	for i := range jobs {
		results[i] = provider.Stored{ID: jobs[i].ID, Outcome: provider.OutcomeRefused, Err: provider.ErrClosed}
	}
	if !s.calls.Enter() {
		return results
	}
	defer s.calls.Leave()
	s.put(ctx, jobs, results)
	return results
}

// put stores jobs in the topics of their queues and says for each what became of it.
func (s *store) put(ctx context.Context, jobs []provider.Job, results []provider.Stored) {
	var queues []*ofQueue
	for i := range jobs {
		p, err := s.newParcel(&jobs[i])
		if err != nil {
			results[i].Outcome, results[i].Err = provider.OutcomeRefused, err
			continue
		}
		queues = sortIn(queues, jobs[i].Queue, p, i)
	}
	var others sync.WaitGroup
	for _, q := range queues[min(1, len(queues)):] {
		others.Go(func() { s.publisher.send(ctx, s.jobsOf(q.queue), q.parcels) })
	}
	if len(queues) > 0 {
		s.publisher.send(ctx, s.jobsOf(queues[0].queue), queues[0].parcels)
	}
	others.Wait()
	for _, q := range queues {
		for n, p := range q.parcels {
			results[q.places[n]].Outcome, results[q.places[n]].Err = p.outcome, p.err
		}
	}
}

// ofQueue are the jobs of a call that go to one queue.
type ofQueue struct {
	queue   string
	parcels []*parcel
	places  []int // in the call
}

func sortIn(queues []*ofQueue, queue string, p *parcel, place int) []*ofQueue {
	at := slices.IndexFunc(queues, func(q *ofQueue) bool { return q.queue == queue })
	if at < 0 {
		at = len(queues)
		queues = append(queues, &ofQueue{queue: queue})
	}
	q := queues[at]
	q.parcels, q.places = append(q.parcels, p), append(q.places, place)
	return queues
}

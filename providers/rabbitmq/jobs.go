package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

var (
	errNoDelays  = errors.New("the job has a delay, and the provider's own delays are replaced or switched off")
	errUnordered = errors.New("the job has an ordering key, and rabbitmq keeps no order: remove it, or use a provider that does")
)

// mostBytes is the largest record that is sent: RabbitMQ 4 closes the channel for a
// larger one, and with it takes the answers of all others that are on their way.
const mostBytes = 15 << 20

// Facts describes what the broker does: provider.Jobs.
func (s *store) Facts() provider.JobFacts {
	return provider.JobFacts{
		Death:       provider.Session,
		RefusesLate: true,
		Retries:     provider.RetriesNone,
		FixedSlots:  true,
		Durable:     true,
	}
}

// Publish stores jobs: provider.Jobs.
func (s *store) Publish(ctx context.Context, jobs []provider.Job, _ provider.PublishOptions) []provider.Stored {
	delays := s.ownDelays()
	return s.put(ctx, jobs, func(j *provider.Job) error {
		if j.Delay > 0 && !delays {
			return errNoDelays
		}
		return nil
	})
}

// entry is a job on its way into the broker.
type entry struct {
	parcel
	queue  string
	digits []int  // of its delay; nil: it goes to its queue
	plain  string // the queue that it goes to, if that is none of jobs
	at     int    // its place in the call
	missed int    // how often there was no queue for it
}

// newEntry makes a job's message. It goes into the ladder if it has a delay.
func (s *store) newEntry(j *provider.Job) (*entry, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	if j.OrderingKey != "" {
		return nil, errUnordered
	}
	if j.Delay > longestDelay {
		return nil, fmt.Errorf("the delay is %v, and %v is the longest", j.Delay, longestDelay.Truncate(time.Hour))
	}
	body, err := provider.Marshal(j)
	if err != nil {
		return nil, err
	}
	if len(body) > mostBytes {
		return nil, fmt.Errorf("the record has %d bytes, and rabbitmq takes at most %d", len(body), mostBytes)
	}
	e := &entry{queue: j.Queue, parcel: parcel{key: s.names.jobs(j.Queue), message: message(j.ID, body)}}
	if j.Delay > 0 {
		e.digits = digits(j.Delay)
		e.key = keyOf(e.digits, j.Queue)
		for level, digit := range e.digits {
			if digit > 0 {
				e.exchange = s.names.step(level)
			}
		}
	}
	return e, nil
}

// message is a record as it is sent.
func message(id string, body []byte) amqp.Publishing {
	m := amqp.Publishing{DeliveryMode: amqp.Persistent, ContentType: contentType, Body: body}
	if len(id) <= longestName {
		m.MessageId = id // for those who look into the queue; nothing depends on it
	}
	return m
}

// contentType tells others what they see.
const contentType = "application/vnd.backstage.record+protobuf"

// put makes entries of jobs and stores them.
func (s *store) put(ctx context.Context, jobs []provider.Job, check func(*provider.Job) error) []provider.Stored {
	results := make([]provider.Stored, len(jobs))
	for i := range jobs {
		results[i] = provider.Stored{ID: jobs[i].ID, Outcome: provider.OutcomeRefused, Err: provider.ErrClosed}
	}
	if !s.calls.Enter() {
		return results
	}
	defer s.calls.Leave()
	entries := make([]*entry, 0, len(jobs))
	for i := range jobs {
		err := check(&jobs[i])
		var e *entry
		if err == nil {
			e, err = s.newEntry(&jobs[i])
		}
		if results[i].Err = err; err == nil {
			e.at = i
			entries = append(entries, e)
		}
	}
	s.send(ctx, entries)
	for _, e := range entries {
		results[e.at].Outcome, results[e.at].Err = e.outcome, e.err
	}
	return results
}

// How long a message is sent again that the broker did not take, and how long after
// each refusal. Queues that were declared a moment ago refuse, when many are declared
// at once or the broker is busy.
const (
	refusing  = 10 * time.Second
	firstTry  = 20 * time.Millisecond
	lastTry   = 500 * time.Millisecond
	mostReach = 5 // of messages that found no queue
)

// send sends entries until it is known of each what became of it, or ctx ends.
func (s *store) send(ctx context.Context, entries []*entry) {
	began := time.Now()
	for wait := firstTry; ; wait = min(2*wait, lastTry) {
		parcels := make([]*parcel, 0, len(entries))
		for _, e := range entries {
			e.again = false
			if err := s.prepare(ctx, e); err != nil {
				e.outcome, e.err = provider.OutcomeRefused, err
				continue
			}
			parcels = append(parcels, &e.parcel)
		}
		s.publisher.deliver(ctx, parcels)
		again := entries[:0:0]
		for _, e := range entries {
			if !e.again {
				continue
			}
			if e.absent {
				s.unmade(e)
				e.missed++
			}
			if e.missed <= mostReach {
				again = append(again, e)
			}
		}
		if entries = again; len(entries) == 0 || time.Since(began) > refusing || !sleep(ctx, wait) {
			return
		}
	}
}

// prepare makes sure that what an entry is sent to is there.
func (s *store) prepare(ctx context.Context, e *entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case e.plain != "":
		return s.topology.plain(ctx, e.plain)
	case e.digits != nil:
		return s.topology.way(ctx, e.digits, e.queue)
	}
	return s.topology.queue(ctx, e.queue)
}

// sendPlain stores one message in a queue that is none of jobs.
func (s *store) sendPlain(ctx context.Context, queue string, m amqp.Publishing) (provider.Outcome, error) {
	e := &entry{plain: queue, parcel: parcel{key: queue, message: m}}
	s.send(ctx, []*entry{e})
	return e.outcome, e.err
}

// unmade notes that what an entry was sent to is not there.
func (s *store) unmade(e *entry) {
	switch {
	case e.plain != "":
		s.topology.forget(e.plain)
	case e.digits != nil:
		s.topology.unmade(e.digits, e.queue)
	default:
		s.topology.forget(s.names.jobs(e.queue))
	}
}

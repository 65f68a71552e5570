package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Replay returns letters to their queues: provider.DeadLetters. A letter is removed
// when its copy is stored.
func (l *letters) Replay(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	return l.end(ctx, addresses, func(found []*wanted) {
		jobs := make([]provider.Job, 0, len(found))
		var send []*wanted
		for _, w := range found {
			if w.letter.Raw != nil {
				w.stored.Err = fmt.Errorf("dead letter %q can only be discarded: %w", w.letter.Address, provider.ErrNoRecord)
				continue
			}
			jobs = append(jobs, w.letter.Job.Replay(now()))
			send = append(send, w)
		}
		stored := l.store.put(ctx, jobs, func(*provider.Job) error { return nil })
		for i, w := range send {
			*w.stored = stored[i]
		}
	})
}

// Discard removes letters: provider.DeadLetters.
func (l *letters) Discard(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	return l.end(ctx, addresses, func(found []*wanted) {
		for _, w := range found {
			w.stored.Outcome, w.stored.Err = provider.OutcomeStored, nil
		}
	})
}

// wanted is a letter that was asked for, and found.
type wanted struct {
	letter *provider.DeadLetter
	copies []amqp.Delivery // more than one if storing it was cut off
	stored *provider.Stored
}

// end removes letters, if decide stored what has to be stored before.
func (l *letters) end(ctx context.Context, addresses []string, decide func(found []*wanted)) ([]provider.Stored, error) {
	results := make([]provider.Stored, len(addresses))
	byQueue := make(map[string][]int)
	for i, address := range addresses {
		results[i] = provider.Stored{Outcome: provider.OutcomeRefused, Err: notFound(address)}
		if _, queue, ok := parseAddress(address); ok {
			byQueue[queue] = append(byQueue[queue], i)
		}
	}
	err := l.store.during(func() error {
		var errs []error
		for queue, places := range byQueue {
			if err := l.endIn(ctx, queue, addresses, places, results, decide); err != nil {
				for _, i := range places {
					if results[i].Outcome != provider.OutcomeStored {
						results[i].Outcome, results[i].Err = provider.OutcomeUnknown, err
					}
				}
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// endIn does so in one queue.
func (l *letters) endIn(ctx context.Context, queue string, addresses []string, places []int, results []provider.Stored, decide func([]*wanted)) error {
	return l.store.scan(ctx, l.store.names.dead(queue), func(sc *scan) error {
		want := make(map[string]*wanted)
		for _, i := range places {
			if want[addresses[i]] == nil {
				want[addresses[i]] = &wanted{stored: &results[i]}
			}
		}
		var found []*wanted
		for {
			d, there, err := sc.next(ctx)
			if err != nil {
				return err
			}
			if !there {
				break
			}
			letter := readLetter(queue, &d)
			w := want[letter.Address]
			if w == nil {
				continue
			}
			if w.letter == nil {
				w.letter = &letter
				w.stored.ID = letter.Job.ID
				found = append(found, w)
			}
			w.copies = append(w.copies, d)
		}
		decide(found)
		l.store.point("replayed")
		var remove []amqp.Delivery
		for _, w := range found {
			if w.stored.Outcome == provider.OutcomeStored {
				remove = append(remove, w.copies...)
			}
		}
		return sc.remove(remove...)
	})
}

package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Replay returns letters to their queues: provider.DeadLetters. A letter is marked as
// gone when its copy is stored.
func (l *letters) Replay(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	return l.end(ctx, addresses, func(found []*wanted) {
		var jobs []provider.Job
		var send []*wanted
		for _, w := range found {
			if w.letter.Raw != nil {
				w.stored.Err = fmt.Errorf("dead letter %q can only be discarded: %w", w.letter.Address, provider.ErrNoRecord)
				continue
			}
			jobs = append(jobs, w.letter.Job.Replay(time.Now()))
			send = append(send, w)
		}
		stored := make([]provider.Stored, len(jobs))
		l.store.put(ctx, jobs, stored)
		for i, w := range send {
			w.stored.Outcome, w.stored.Err = stored[i].Outcome, stored[i].Err
		}
		l.store.point("replayed")
	})
}

// Discard marks letters as gone: provider.DeadLetters.
func (l *letters) Discard(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	return l.end(ctx, addresses, func(found []*wanted) {
		for _, w := range found {
			w.stored.Outcome, w.stored.Err = provider.OutcomeStored, nil
		}
	})
}

// wanted is a letter that was asked for, and found.
type wanted struct {
	id     string
	letter provider.DeadLetter
	stored *provider.Stored
}

// end marks letters as gone, if decide stored what has to be stored before.
func (l *letters) end(ctx context.Context, addresses []string, decide func(found []*wanted)) ([]provider.Stored, error) {
	results := make([]provider.Stored, len(addresses))
	byQueue := make(map[string]map[string]*provider.Stored)
	for i, address := range addresses {
		results[i] = provider.Stored{Outcome: provider.OutcomeRefused, Err: notFound(address)}
		id, queue, ok := parseAddress(address)
		if !ok {
			continue
		}
		if byQueue[queue] == nil {
			byQueue[queue] = make(map[string]*provider.Stored)
		}
		if byQueue[queue][id] == nil {
			byQueue[queue][id] = &results[i]
		}
	}
	err := l.store.during(func() error {
		var errs []error
		for queue, asked := range byQueue {
			if err := l.endIn(ctx, queue, asked, decide); err != nil {
				errs = append(errs, fmt.Errorf("dead letters of queue %s: %w", queue, err))
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
func (l *letters) endIn(ctx context.Context, queue string, asked map[string]*provider.Stored, decide func([]*wanted)) error {
	back, err := l.store.ending.take(ctx, queue)
	if err != nil {
		return err
	}
	defer back()
	there := make(map[string]int64)
	found := make(map[string]*wanted)
	end, err := l.each(ctx, queue, func(r *received) {
		id := string(r.key)
		delete(there, id)
		delete(found, id)
		if r.value == nil {
			return
		}
		there[id] = r.offset
		if stored := asked[id]; stored != nil {
			found[id] = &wanted{id: id, letter: readLetter(queue, r), stored: stored}
		}
	})
	if err != nil {
		return err
	}
	var all []*wanted
	for _, w := range found {
		w.stored.ID = w.letter.Job.ID
		all = append(all, w)
	}
	decide(all)
	l.gone(ctx, queue, all, there)
	l.trim(ctx, queue, there, end)
	return nil
}

// gone puts on record which letters are gone, and takes them out of those that are
// there.
func (l *letters) gone(ctx context.Context, queue string, all []*wanted, there map[string]int64) {
	var marks []*parcel
	var of []*wanted
	for _, w := range all {
		if w.stored.Outcome == provider.OutcomeStored {
			marks, of = append(marks, goneParcel(w.id)), append(of, w)
		}
	}
	l.store.publisher.send(ctx, l.store.deadOf(queue), marks)
	for i, w := range of {
		if marks[i].outcome == provider.OutcomeStored {
			delete(there, w.id)
			continue
		}
		w.stored.Outcome = provider.OutcomeUnknown
		w.stored.Err = fmt.Errorf("the dead letter may still be there: %w", marks[i].err)
	}
}

// trim deletes what is before the first letter that is there. Where it may not, the
// broker removes the marked letters when it compacts the topic.
func (l *letters) trim(ctx context.Context, queue string, there map[string]int64, end int64) {
	for _, offset := range there {
		end = min(end, offset)
	}
	if end > 0 {
		_ = l.store.deleteRecords(ctx, l.store.names.dead(queue), 0, end)
	}
}

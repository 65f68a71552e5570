package kafka

import (
	"context"
	"sync"
	"time"
)

// census counts the dead letters of queues. It remembers which were there when it last
// looked, and reads of a topic only what is new.
type census struct {
	letters *letters
	turns   turns

	mu sync.Mutex
	of map[string]*counted // by queue; each is used by who has the queue's turn
}

// counted are the letters of a queue that are there.
type counted struct {
	places map[string]letterPlace // by their keys
	next   int64                  // the first offset that was not read
	last   string                 // the key of the record before it
}

// count returns how many letters a queue has, and when the oldest of them died.
func (c *census) count(ctx context.Context, queue string) (n int64, oldest time.Time, err error) {
	back, err := c.turns.take(ctx, queue)
	if err != nil {
		return 0, oldest, err
	}
	defer back()
	known := c.known(queue)
	if err := c.look(ctx, queue, known); err != nil {
		return 0, oldest, err
	}
	for _, l := range known.places {
		if at := time.Unix(0, l.at); oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return int64(len(known.places)), oldest, nil
}

func (c *census) known(queue string) *counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]*counted)
	}
	if c.of[queue] == nil {
		c.of[queue] = new(counted)
	}
	return c.of[queue]
}

// look reads what is new, and begins with the last record that it knows. If that is no
// longer there, the topic was compacted or made anew, and all of it is read again.
func (c *census) look(ctx context.Context, queue string, known *counted) error {
	from, to, err := c.letters.bounds(ctx, queue)
	if err != nil {
		return err
	}
	topic := c.letters.store.names.dead(queue)
	if known.next > from && known.next <= to {
		first, same := true, false
		err := c.letters.store.scan(ctx, topic, 0, known.next-1, to, func(r *received) bool {
			if first {
				first, same = false, r.offset == known.next-1 && string(r.key) == known.last
				return same
			}
			known.note(queue, r)
			return true
		})
		if err != nil || same {
			known.forget(from)
			return err
		}
	}
	*known = counted{places: make(map[string]letterPlace), next: from}
	return c.letters.store.scan(ctx, topic, 0, from, to, func(r *received) bool {
		known.note(queue, r)
		return true
	})
}

// note takes note of a record.
func (k *counted) note(queue string, r *received) {
	key := string(r.key)
	delete(k.places, key)
	if r.value != nil {
		k.places[key] = letterPlace{at: diedAt(r).UnixNano(), queue: queue, offset: r.offset}
	}
	k.next, k.last = r.offset+1, key
}

// forget forgets what was deleted because it is before an offset.
func (k *counted) forget(before int64) {
	for key, l := range k.places {
		if l.offset < before {
			delete(k.places, key)
		}
	}
}

package redisstreams

import (
	"sync"
	"time"
)

// unboundedFor is how long a queue is taken for one without a bound after it was seen
// to have none: so much later a new bound holds for all.
const unboundedFor = 5 * time.Second

// bounds remembers which queues have no bound, so that a lone job needs no look.
type bounds struct {
	mu   sync.Mutex
	none map[string]time.Time // until when
}

// isFree reports whether a queue is known to have no bound.
func (b *bounds) isFree(queue string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.none[queue])
}

// learn notes which of the queues that were looked at have a bound, by their numbers
// from 1.
func (b *bounds) learn(queues []string, bounded []any) {
	until := time.Now().Add(unboundedFor)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.none == nil {
		b.none = make(map[string]time.Time)
	}
	for _, queue := range queues {
		b.none[queue] = until
	}
	for _, n := range bounded {
		if i := int(numberOf(n)) - 1; i < len(queues) {
			delete(b.none, queues[i])
		}
	}
}

package redisstreams

import (
	"context"
	"errors"
	"sync"
)

// slot is what this process puts into one hash slot: calls that go there share
// steps.
type slot struct {
	store *store
	puts  batcher[*entry]
}

// slots are the slots in use, by the tag of their keys. With one tag for the whole
// namespace there is one.
type slots struct {
	mu  sync.RWMutex
	all map[string]*slot
}

func (all *slots) of(s *store, tag string) *slot {
	all.mu.RLock()
	at := all.all[tag]
	all.mu.RUnlock()
	if at != nil {
		return at
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if at = all.all[tag]; at == nil {
		at = &slot{store: s}
		at.puts.flush, at.puts.weigh = at.flush, (*entry).weight
		if all.all == nil {
			all.all = make(map[string]*slot)
		}
		all.all[tag] = at
	}
	return at
}

// wait returns when nothing is under way any more.
func (all *slots) wait(ctx context.Context) error {
	all.mu.RLock()
	defer all.mu.RUnlock()
	var errs []error
	for _, at := range all.all {
		errs = append(errs, at.puts.wait(ctx))
	}
	return errors.Join(errs...)
}

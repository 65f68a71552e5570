package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// probePatience is how long Health waits for one server.
const probePatience = 5 * time.Second

// health asks whether each slot in use takes jobs, and each subscription whether it
// hears: provider.Provider.Health. A script that would write is refused where nothing
// can be written, even if it writes nothing.
func (s *store) health(ctx context.Context) error {
	return s.during(func() error {
		within, cancel := context.WithTimeout(ctx, probePatience)
		defer cancel()
		var errs []error
		for _, key := range s.probes() {
			if _, err := s.link.run(within, &s.scripts.put, []string{key}, "0"); err != nil {
				errs = append(errs, fmt.Errorf("jobs cannot be stored: %w", err))
				if r, known := refusalOf(err); known && r.blocked {
					s.news.refused(err)
				}
				break
			}
			s.news.accepted()
		}
		for _, sub := range s.subscriptions() {
			errs = append(errs, sub.hears())
		}
		return errors.Join(errs...)
	})
}

// probes returns a key of each slot to ask.
func (s *store) probes() []string {
	keys := []string{s.keys.registry()}
	if s.keys.tags == TagNamespace {
		return keys
	}
	for _, sub := range s.subscriptions() {
		for _, l := range sub.lanes {
			keys = append(keys, l.keys.stream)
		}
	}
	return keys
}

func (s *store) subscriptions() []*subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*subscription, 0, len(s.subs))
	for sub := range s.subs {
		all = append(all, sub)
	}
	return all
}

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// probePatience is how long Health waits for the broker.
const probePatience = 5 * time.Second

// health asks whether jobs can be published, and whether each subscription hears:
// provider.Provider.Health.
func (s *store) health(ctx context.Context) error {
	return s.during(func() error {
		within, cancel := context.WithTimeout(ctx, probePatience)
		defer cancel()
		var errs []error
		if o, _, why := s.publisher.state(); o == nil || o.conn.over() {
			if _, err := s.publisher.ready(within); err != nil {
				errs = append(errs, fmt.Errorf("jobs cannot be published: %w", errors.Join(why, err)))
			}
		} else if o.conn.doubtful() {
			errs = append(errs, fmt.Errorf("jobs cannot be published: %w", o.conn.silence()))
		}
		if len(errs) == 0 {
			if err := s.admin.ping(within); err != nil {
				errs = append(errs, fmt.Errorf("the broker does not answer: %w", explained(err)))
			}
		}
		for _, sub := range s.subscriptions() {
			errs = append(errs, sub.hears())
		}
		return errors.Join(errs...)
	})
}

package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// probePatience is how long Health waits for the brokers.
const probePatience = 5 * time.Second

// health asks whether jobs can be published, and whether each subscription hears:
// provider.Provider.Health.
func (s *store) health(ctx context.Context) error {
	return s.during(func() error {
		within, cancel := context.WithTimeout(ctx, probePatience)
		defer cancel()
		var errs []error
		if _, err := s.client.ApiVersions(within, &kafkago.ApiVersionsRequest{}); err != nil {
			errs = append(errs, fmt.Errorf("no broker answers: %w", explained(errors.Join(err, s.news.reason()))))
		}
		for queue, why := range s.news.alarms() {
			errs = append(errs, fmt.Errorf("jobs of queue %s cannot be published: %w", queue, why))
		}
		for _, sub := range s.subscriptions() {
			errs = append(errs, sub.hears())
		}
		return errors.Join(errs...)
	})
}

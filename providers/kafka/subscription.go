package kafka

import (
	"context"
	"errors"

	"github.com/backstage-go/backstage/runtime/provider"
)

// subscription is this process as a worker: provider.Subscription.
type subscription struct {
	store *store
	opts  provider.SubscribeOptions
}

// Subscribe makes this process a worker: provider.Jobs.
func (s *store) Subscribe(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error) {
	var sub provider.Subscription
	err := s.during(func() (err error) {
		sub, err = s.subscribe(ctx, opts)
		return err
	})
	return sub, err
}

func (s *store) subscribe(context.Context, provider.SubscribeOptions) (provider.Subscription, error) {
	return nil, errors.New("kafka: there is no worker yet")
}

// Close ends the subscription: provider.Subscription.
func (sub *subscription) Close(context.Context) error { return nil }

// hears says why the subscription does not receive; nil if it does. Health asks it.
func (sub *subscription) hears() error { return nil }

// running returns the offsets of what this worker runs of a queue, for each partition
// that it has, also where that is nothing. The numbers for operators ask it.
func (sub *subscription) running(queue string) map[int][]int64 { return nil }

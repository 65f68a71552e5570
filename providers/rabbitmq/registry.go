package rabbitmq

import (
	"context"
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// register puts a queue's name on record, before the queue is made.
func (s *store) register(ctx context.Context, queue string) error {
	m := amqp.Publishing{DeliveryMode: amqp.Persistent, ContentType: "text/plain", Body: []byte(queue)}
	outcome, err := s.sendPlain(ctx, s.names.registry(), m)
	if outcome != provider.OutcomeStored {
		return fmt.Errorf("put the name of queue %q on record: %w", queue, err)
	}
	return nil
}

// queues are the names on record, sorted.
func (s *store) queues(ctx context.Context) ([]string, error) {
	names := []string{}
	err := s.scan(ctx, s.names.registry(), func(sc *scan) error {
		for {
			d, there, err := sc.next(ctx)
			if err != nil || !there {
				return err
			}
			names = append(names, string(d.Body))
		}
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// Package side has what is measured beside each other on Kafka: Backstage, and two loops
// written by hand, each with another client.
package side

import (
	"context"
	"time"

	"github.com/backstage-go/backstage/bench/internal/contest"
	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/kafka/internal/bare"
	"github.com/backstage-go/backstage/bench/kafka/internal/server"
)

// Names of the sides.
const (
	Backstage = "backstage"
	Segmentio = "kafka-go"
	Franz     = "franz-go"
)

// Interval is how often the bare loops commit: about as often as the provider does under
// load.
const Interval = 5 * time.Millisecond

// All returns all sides on a server, Backstage first.
func All(s *server.Server) []contest.Side {
	return []contest.Side{
		{Name: Backstage, Open: func(ctx context.Context) (load.Side, error) { return newBackstage(ctx, s) }},
		{Name: Segmentio, Open: func(ctx context.Context) (load.Side, error) {
			topic := s.Fresh()
			if err := s.MakeTopic(ctx, topic); err != nil {
				return nil, err
			}
			return newBare(bare.NewSegmentio(s.Addr(), topic, Interval)), nil
		}},
		{Name: Franz, Open: func(ctx context.Context) (load.Side, error) {
			topic := s.Fresh()
			if err := s.MakeTopic(ctx, topic); err != nil {
				return nil, err
			}
			queue, err := bare.NewFranz(s.Addr(), topic, Interval)
			if err != nil {
				return nil, err
			}
			return newBare(queue), nil
		}},
	}
}

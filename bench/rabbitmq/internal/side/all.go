package side

import (
	"context"
	"errors"

	"github.com/backstage-go/backstage/bench/internal/contest"
	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/bare"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
)

// All returns all sides on a server, Backstage first. Each leaves its queue empty when it
// is closed.
func All(s *server.Server) []contest.Side {
	return []contest.Side{
		{Name: Backstage, Open: func(ctx context.Context) (load.Side, error) {
			one, err := NewBackstage(ctx, s.URL())
			return emptied{one, s, JobsQueue}, err
		}},
		{Name: Bare, Open: func(context.Context) (load.Side, error) {
			one, err := NewBare(s.URL())
			return emptied{one, s, bare.Name}, err
		}},
	}
}

// emptied is a side whose queue is emptied at its end.
type emptied struct {
	load.Side
	server *server.Server
	queue  string
}

func (e emptied) Close() error {
	return errors.Join(e.Side.Close(), e.server.Empty(context.Background(), e.queue))
}

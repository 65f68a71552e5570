// Package server is the RabbitMQ of one measurement: one node, on ports and in a folder
// of its own.
package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

// Server is a running RabbitMQ.
type Server struct {
	*brokers.RabbitMQ
}

// Start starts a RabbitMQ. Its files are where temporary files are ($TMPDIR).
func Start(ctx context.Context) (*Server, error) {
	started, err := brokers.StartRabbitMQ(ctx, brokers.RabbitMQOptions{})
	if err != nil {
		return nil, err
	}
	return &Server{started}, nil
}

// emptying is how long a queue may take to get back what its consumers had.
const emptying = 30 * time.Second

// Empty removes all jobs from a queue when nobody consumes from it any more. A queue
// that is not there is empty.
func (s *Server) Empty(ctx context.Context, queue string) error {
	conn, err := amqp.Dial(s.URL())
	if err != nil {
		return err
	}
	defer conn.Close()
	for end := time.Now().Add(emptying); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		state, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			return nil // it is not there, and the channel has ended
		}
		if state.Consumers == 0 {
			_, err := ch.QueuePurge(queue, false)
			return err
		}
		if err := ch.Close(); err != nil {
			return err
		}
	}
	return fmt.Errorf("somebody still consumes from %s", queue)
}

// Describe says what is measured, and on what: machine, versions, and the command.
func (s *Server) Describe() (string, error) {
	conn, err := amqp.Dial(s.URL())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return fmt.Sprintf("%s\nRabbitMQ %v, one node, quorum queues%s\n%s %s", measure.Machine(), conn.Properties["version"], client(),
		filepath.Base(os.Args[0]), strings.Join(os.Args[1:], " ")), nil
}

// client names the client, where the program was built with what it needs to know.
func client() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/rabbitmq/amqp091-go" {
				return ", " + dep.Path + " " + dep.Version
			}
		}
	}
	return ""
}

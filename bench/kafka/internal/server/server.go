// Package server is the Kafka of one measurement: one node, on ports and in a folder of
// its own.
package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

// Partitions is how many every topic has.
const Partitions = 4

// Server is a running Kafka.
type Server struct {
	*brokers.Kafka
	opened atomic.Int64
}

// Start starts a Kafka with a Java machine for measuring: all compilers, a heap of 1 GiB.
// Its files are where temporary files are ($TMPDIR).
func Start(ctx context.Context) (*Server, error) {
	started, err := brokers.StartKafka(ctx, brokers.KafkaOptions{Java: []string{"-Xms1g", "-Xmx1g", "-XX:+UseG1GC"}})
	if err != nil {
		return nil, err
	}
	return Of(started), nil
}

// Of makes a server of one that runs.
func Of(k *brokers.Kafka) *Server { return &Server{Kafka: k} }

// Fresh returns a name for topics and groups that no run had before: to empty a topic
// takes longer than to use another.
func (s *Server) Fresh() string { return fmt.Sprint("run", s.opened.Add(1)) }

// MakeTopic makes a topic of one copy.
func (s *Server) MakeTopic(ctx context.Context, name string) error {
	client := &kafka.Client{Addr: kafka.TCP(s.Addr())}
	made, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: name, NumPartitions: Partitions, ReplicationFactor: 1}},
	})
	if err != nil {
		return err
	}
	return made.Errors[name]
}

// Describe says what is measured, and on what: machine, versions, and the command.
func (s *Server) Describe() string {
	return fmt.Sprintf("%s\nKafka, one node, %d partitions, acks of all%s\n%s %s",
		measure.Machine(), Partitions, clients(), filepath.Base(os.Args[0]), strings.Join(os.Args[1:], " "))
}

// clients names the clients, where the program was built with what it needs to know.
func clients() string {
	var names strings.Builder
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/segmentio/kafka-go" || dep.Path == "github.com/twmb/franz-go" {
				names.WriteString(", " + dep.Path + " " + dep.Version)
			}
		}
	}
	return names.String()
}

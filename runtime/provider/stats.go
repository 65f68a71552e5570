package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Stats tells operators how queues stand.
type Stats interface {
	// Queues returns the names of all queues, sorted.
	Queues(ctx context.Context) ([]string, error)
	// Queue returns the numbers of one queue. A queue that does not exist has
	// zeros.
	Queue(ctx context.Context, queue string) (QueueStats, error)
}

// QueueStats are the numbers of one queue. Those that the broker cannot tell are
// unknown, never zero.
type QueueStats struct {
	// Depth counts jobs that wait for a worker: ready to start, or behind another
	// of their ordering key.
	Depth Measure[int64] `json:"depth"`
	// OldestReady is how long the oldest that is ready to start has been so.
	OldestReady Measure[time.Duration] `json:"oldest_ready"`
	// InFlight counts deliveries that are not settled.
	InFlight Measure[int64] `json:"in_flight"`
	// Held counts jobs that wait for their time.
	Held Measure[int64] `json:"held"`
	// Dead counts dead letters.
	Dead Measure[int64] `json:"dead"`
	// OldestDead is how long the oldest of them has been dead.
	OldestDead Measure[time.Duration] `json:"oldest_dead"`
}

// Measure is a number that may be unknown. The zero value is unknown.
type Measure[T any] struct {
	value T
	known bool
}

// Measured returns a known number.
func Measured[T any](value T) Measure[T] { return Measure[T]{value, true} }

// Get returns the number and whether it is known.
func (m Measure[T]) Get() (value T, known bool) { return m.value, m.known }

// String returns the number, or "unknown".
func (m Measure[T]) String() string {
	if !m.known {
		return "unknown"
	}
	return fmt.Sprint(m.value)
}

// MarshalJSON returns the number, or null if it is unknown.
func (m Measure[T]) MarshalJSON() ([]byte, error) {
	if !m.known {
		return []byte("null"), nil
	}
	return json.Marshal(m.value)
}

package backstage

import (
	"fmt"
	"time"
)

// EnqueueOption changes one job where it is made. There are three kinds of
// options, and none can be used in the place of another: those of an enqueue,
// those of an edge (each also good at enqueue), and those of a registration.
type EnqueueOption interface {
	enqueue(*making) error
}

// EdgeOption changes one next job where a handler makes it.
type EdgeOption interface {
	EnqueueOption
	edge()
}

// RegisterOption changes how a worker runs a task.
type RegisterOption interface {
	register(*registered)
}

type enqueueOption func(*making) error

func (o enqueueOption) enqueue(m *making) error { return o(m) }

type edgeOption struct{ enqueueOption }

func (edgeOption) edge() {}

type registerOption func(*registered)

func (o registerOption) register(r *registered) { o(r) }

// In lets a job start no earlier than after a duration, in place of its task's
// delay. Zero is at once.
func In(d time.Duration) EdgeOption {
	return edgeOption{func(m *making) error {
		if d < 0 {
			return fmt.Errorf("In(%v): a delay cannot be negative", d)
		}
		if d > maxDelay {
			return fmt.Errorf("In(%v): longer than %v", d, maxDelay)
		}
		m.delay, m.at = d, time.Time{}
		return nil
	}}
}

// At lets a job start no earlier than at a time, in place of its task's delay.
// What counts is the duration until then by this process' clock, when the job is
// sent. A time in the past is at once.
func At(t time.Time) EdgeOption {
	return edgeOption{func(m *making) error {
		if time.Until(t) > maxDelay {
			return fmt.Errorf("At(%v): more than %v from now", t, maxDelay)
		}
		m.delay, m.at = 0, t
		return nil
	}}
}

// Header gives a job a header, which travels with it. Keys and values are text.
// Next jobs do not inherit it.
func Header(key, value string) EdgeOption {
	return edgeOption{func(m *making) error {
		return m.setHeader(key, value)
	}}
}

// WithID gives a job its id, in place of a random one. It is what to try again
// with after an unknown outcome. It is not a dedupe key: two jobs enqueued with
// one id may both run. One that is held for later and never started is replaced by
// another of the same id and task, where held jobs can be found by their id. An id is at
// most 200 bytes of text that can be printed, without spaces.
func WithID(id string) EnqueueOption {
	return enqueueOption(func(m *making) error {
		if err := checkID("WithID", id); err != nil {
			return err
		}
		m.job.ID = id
		return nil
	})
}

// OnQueue lets a job wait in another queue than its task's. A queue's name is at
// most 200 bytes of plain ASCII without spaces, as in a schema.
func OnQueue(queue string) EnqueueOption {
	return enqueueOption(func(m *making) error {
		if err := checkName("OnQueue", queue); err != nil {
			return err
		}
		m.job.Queue = queue
		return nil
	})
}

// WithExpires bounds the time from first due within which a job must start.
func WithExpires(d time.Duration) EnqueueOption {
	return durationOption("WithExpires", d, func(m *making) { m.job.Expires = d })
}

// WithTimeout bounds each attempt of a job, whatever the worker's code says.
func WithTimeout(d time.Duration) EnqueueOption {
	return durationOption("WithTimeout", d, func(m *making) { m.job.Overrides.Timeout = d })
}

// WithMaxAge bounds the time from first due within which a job is retried,
// whatever the worker's code says.
func WithMaxAge(d time.Duration) EnqueueOption {
	return durationOption("WithMaxAge", d, func(m *making) { m.job.Overrides.MaxAge = d })
}

// WithMaxAttempts says how many runs of a job may end in failure, the first
// included, whatever the worker's code says.
func WithMaxAttempts(n int) EnqueueOption {
	return enqueueOption(func(m *making) error {
		if n < 1 || n > maxAttemptsLimit {
			return fmt.Errorf("WithMaxAttempts(%d): must be between 1 and %d", n, maxAttemptsLimit)
		}
		m.job.Overrides.MaxAttempts = int32(n)
		return nil
	})
}

// WithBackoff sets the wait before a retry of a job, whatever the worker's code
// says.
func WithBackoff(b Backoff) EnqueueOption {
	return enqueueOption(func(m *making) error {
		if b.Base <= 0 || b.Cap < b.Base {
			return fmt.Errorf("WithBackoff(%v..%v): must be positive and not shrink", b.Base, b.Cap)
		}
		m.job.Overrides.BackoffBase, m.job.Overrides.BackoffCap = b.Base, b.Cap
		return nil
	})
}

// Intercept puts interceptors around the handler of one task, inside those of
// the worker. The first is the outermost.
func Intercept(interceptors ...Interceptor) RegisterOption {
	return registerOption(func(r *registered) {
		r.interceptors = append(r.interceptors, interceptors...)
	})
}

// Serve says in which queues a task's jobs wait beside its own: those where they
// are sent by OnQueue, or where the task waited before. A worker that names no
// Queues serves these too; one that does must name them all, or Run says so.
func Serve(queues ...string) RegisterOption {
	return registerOption(func(r *registered) {
		r.queues = append(r.queues, queues...)
	})
}

const (
	// maxAttemptsLimit keeps counters far from their bounds.
	maxAttemptsLimit = 1_000_000
	// maxDelay keeps times far from theirs: a hundred years.
	maxDelay = 100 * 365 * 24 * time.Hour
)

func durationOption(name string, d time.Duration, set func(*making)) EnqueueOption {
	return enqueueOption(func(m *making) error {
		if d <= 0 {
			return fmt.Errorf("%s(%v): must be positive", name, d)
		}
		set(m)
		return nil
	})
}

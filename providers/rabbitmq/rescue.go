package rabbitmq

import (
	"context"
	"errors"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/providers/internal/run"
	"github.com/backstage-go/backstage/runtime/provider"
)

// rescuePrefetch is how many jobs are brought back at a time.
const rescuePrefetch = 10

// rescue brings a job back to its queue that the broker wanted to be rid of: because
// a policy sets a delivery limit of its own, or a time to live. It counts as one more
// return, because for a limit that is what it was.
func (s *subscription) rescue(l *lane, d *delivery, m *amqp.Delivery) {
	d.job.Counters.Crashes++
	s.store.news.emit(provider.Event{Kind: provider.Degraded, Queue: d.job.Queue, Count: 1,
		Message: "the broker gave a job up (" + text(m.Headers["x-first-death-reason"]) + "), which is brought back: look for policies on " + s.store.names.jobs(d.job.Queue)})
	s.work.Go(func() { s.persist(d, d.Release) })
}

// persist settles a delivery that no handler has, until it is settled or not ours any
// more.
func (s *subscription) persist(d *delivery, settle func(ctx context.Context) error) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := settle(s.closing)
		if err == nil || errors.Is(err, provider.ErrSettled) || errors.Is(err, provider.ErrLeaseLost) || errors.Is(err, provider.ErrClosed) {
			return
		}
		if !sleep(s.closing, wait) {
			return
		}
	}
}

// bury dead-letters bytes that are no record.
func (l *lane) bury(d *delivery, m *amqp.Delivery, why error) {
	s := l.sub.store
	queue := l.queue
	if queue == "" {
		queue = strings.TrimPrefix(text(m.Headers["x-first-death-queue"]), s.names.jobs(""))
	}
	f := provider.Failure{At: now(), Class: provider.ClassNoRecord, Message: why.Error(), Worker: l.sub.opts.Worker}
	raw := m.Body
	if raw == nil {
		raw = []byte{}
	}
	l.sub.persist(d, func(ctx context.Context) error {
		return d.settle(ctx, run.Dead, func() error { return d.carryLetter(ctx, queue, nil, raw, f) })
	})
	if d.beats() == provider.ErrSettled {
		s.news.emit(provider.Event{Kind: provider.ForeignRecord, Queue: queue, Count: 1, Message: "bytes that are no job were dead-lettered", Err: why})
	}
}

// text reads a header.
func text(v any) string {
	s, _ := v.(string)
	return s
}

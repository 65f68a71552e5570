package redisstreams

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// leave takes back what of a call is not under way.
func (at *slot) leave(c *call, why error) {
	for _, e := range at.puts.withdraw(func(e *entry) bool { return e.call == c }) {
		e.leave(why)
	}
}

// flush stores a batch in one step.
func (at *slot) flush(ctx context.Context, batch []*entry) {
	s := at.store
	var problems []any
	var err error
	order := batch
	switch {
	case slices.ContainsFunc(batch, func(e *entry) bool { return !e.simple() }):
		problems, err = s.putAny(ctx, batch)
	case len(batch) == 1 && s.replicas.least == 0 && (!batch[0].bounded || s.bounds.isFree(batch[0].queue)):
		err = s.putLone(ctx, batch[0])
	default:
		problems, order, err = s.putSimple(ctx, batch)
	}
	if err == nil && len(problems) == 0 {
		s.news.accepted()
		for _, e := range order {
			e.answer(provider.Stored{Outcome: provider.OutcomeStored}, nil)
		}
		return
	}
	answers := make([]putAnswer, len(order))
	for _, p := range problems {
		list := listOf(p)
		if i := int(numberOf(list[0])) - 1; i < len(answers) {
			answers[i] = putProblem(textOf(list[1]), textOf(list[2]))
		}
	}
	s.putKnown(err, answers)
	for i, e := range order {
		e.answer(answers[i].stored, answers[i].waits)
	}
}

// putLone stores one ready job, of a queue that has no bound. A script would cost Redis
// half as much again.
func (s *store) putLone(ctx context.Context, e *entry) error {
	if err := s.register(ctx, e.queue); err != nil {
		return err
	}
	stream := s.keys.queue(scope{}, e.queue).stream
	s.link.point("add begins")
	err := s.link.to(ctx, stream, func(server *redis.Client) error {
		return server.Do(ctx, "XADD", stream, "*", field, e.body).Err()
	})
	if err == nil {
		s.link.point("add is done")
	}
	return err
}

// putAny stores entries of all kinds.
func (s *store) putAny(ctx context.Context, batch []*entry) ([]any, error) {
	var r request
	for _, e := range batch {
		r.queue(s.keys, e.scope, e.queue)
	}
	if err := s.register(ctx, r.own()...); err != nil {
		return nil, err
	}
	r.args = make([]any, 0, 1+len(r.names)+9*len(batch))
	r.sayQueues()
	for _, e := range batch {
		r.sayJob(s.keys, e)
	}
	return s.link.runSafely(ctx, s.replicas, &s.scripts.put, r.keys, r.args...)
}

// shelf is where entries go together that are nothing but ready.
type shelf struct {
	queue   string
	bounded bool
}

// putSimple stores entries that are nothing but ready, and returns them in the order in
// which the script numbers them.
func (s *store) putSimple(ctx context.Context, batch []*entry) ([]any, []*entry, error) {
	r, order := s.simpleRequest(batch)
	if err := s.register(ctx, r.names...); err != nil {
		return nil, order, err
	}
	reply, err := s.link.runSafely(ctx, s.replicas, &s.scripts.add, r.keys, r.args...)
	if len(reply) == 2 {
		s.bounds.learn(r.names, listOf(reply[1]))
	}
	return listOf(nth(reply, 0)), order, err
}

func (s *store) simpleRequest(batch []*entry) (*request, []*entry) {
	r := &request{args: make([]any, 0, 2+len(batch))}
	at := batch[0].shelf()
	if !slices.ContainsFunc(batch, func(e *entry) bool { return e.shelf() != at }) {
		r.sayShelf(s.keys, at, batch)
		return r, batch
	}
	order := make([]*entry, 0, len(batch))
	for left := batch; len(left) > 0; {
		at := left[0].shelf()
		first := len(order)
		rest := make([]*entry, 0, len(left))
		for _, e := range left {
			if e.shelf() == at {
				order = append(order, e)
			} else {
				rest = append(rest, e)
			}
		}
		r.sayShelf(s.keys, at, order[first:])
		left = rest
	}
	return r, order
}

// sayShelf adds the entries of a shelf, as add.lua reads them.
func (r *request) sayShelf(k *keyring, at shelf, entries []*entry) {
	h := k.queue(scope{}, at.queue)
	r.keys = append(r.keys, h.stream, h.bound, h.held)
	r.names = append(r.names, at.queue)
	kind := "r"
	if at.bounded {
		kind = "b"
	}
	r.say(kind, digits(len(entries)))
	for _, e := range entries {
		r.say(e)
	}
}

// putAnswer is what became of an entry of a batch.
type putAnswer struct {
	stored provider.Stored // OutcomeUnknown: nothing was said about it
	waits  error
}

// putProblem reads what the script says of an entry that it did not store.
func putProblem(word, why string) putAnswer {
	refused := provider.Stored{Outcome: provider.OutcomeRefused}
	switch word {
	case "full":
		return putAnswer{refused, provider.ErrQueueFull}
	case "pending":
		return putAnswer{refused, provider.ErrDedupePending}
	case "duplicate":
		return putAnswer{provider.Stored{Outcome: provider.OutcomeDuplicate, Holder: why}, nil}
	}
	refused.Err = explained(saidError(why))
	return putAnswer{refused, nil}
}

// putKnown completes the answers by how the script ended as a whole.
func (s *store) putKnown(err error, answers []putAnswer) {
	rest := provider.Stored{Outcome: provider.OutcomeStored}
	switch r, known := refusalOf(err); {
	case err == nil:
		s.news.accepted()
	case unknown(err):
		rest = provider.Stored{Outcome: provider.OutcomeUnknown, Err: err}
	default:
		rest = provider.Stored{Outcome: provider.OutcomeRefused, Err: err}
		if known && r.blocked {
			s.news.refused(err)
		}
	}
	for i := range answers {
		if a := &answers[i]; a.stored.Outcome == provider.OutcomeUnknown {
			a.stored = rest
		}
	}
}

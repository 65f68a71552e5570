package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// ending is the kind of a settlement.
type ending int

const (
	endNone ending = iota
	endAck
	endRetry
	endDead
	endRelease
)

// settlement is one call that ends a run.
type settlement struct {
	kind  ending
	next  []*entry      // endAck
	body  []byte        // endRetry, endDead
	after time.Duration // endRetry
	stamp string        // endRetry that waits

	delivery *delivery
	call     call
	err      error
}

func (st *settlement) answer(err error) {
	if st.call.open() {
		st.err = err
		st.call.answered()
	}
}

// weight is the bytes that it adds to a script.
func (st *settlement) weight() int {
	n := len(st.body) + len(st.delivery.id)
	for _, e := range st.next {
		n += e.weight()
	}
	return n
}

// settle does a batch of settlements: in one step those that leave nothing behind, in
// another all others.
func (d *desk) settle(ctx context.Context, batch []*settlement) {
	s := d.sub.store
	claims := s.ownClaims()
	plain := make([]*settlement, 0, len(batch))
	var others []*settlement
	for _, st := range batch {
		if st.plain(claims) {
			plain = append(plain, st)
		} else {
			others = append(others, st)
		}
	}
	if len(plain) > 0 {
		r, order := d.ackRequest(plain)
		lost, err := s.link.runSafely(ctx, s.replicas, &s.scripts.ack, r.keys, r.args...)
		errs := make([]error, len(order))
		for _, n := range lost {
			if i := int(numberOf(n)) - 1; i < len(errs) {
				errs[i] = provider.ErrLeaseLost
			}
		}
		d.settled(ctx, order, errs, err)
	}
	if len(others) > 0 {
		r, order := d.settleRequest(others)
		problems, err := d.settleOthers(ctx, r)
		errs := make([]error, len(order))
		for _, v := range problems {
			p := listOf(v)
			if i := int(numberOf(p[0])) - 1; i < len(errs) {
				errs[i] = settleProblem(textOf(p[1]), textOf(p[2]))
			}
		}
		d.settled(ctx, order, errs, err)
	}
}

// settleOthers runs the script. The queues of next jobs are put on the list before.
func (d *desk) settleOthers(ctx context.Context, r *request) ([]any, error) {
	s := d.sub.store
	if err := s.register(ctx, r.names...); err != nil {
		return nil, err
	}
	return s.link.runSafely(ctx, s.replicas, &s.scripts.settle, r.keys, r.args...)
}

// settled answers settlements by what the script says of each, and by how it ended as
// a whole.
func (d *desk) settled(ctx context.Context, list []*settlement, errs []error, err error) {
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	d.resolve(ctx, list, errs)
	for i, st := range list {
		if errs[i] == nil {
			d.sub.store.holdsBy(st)
		}
		answer := st.delivery.end(errs[i], !isAnswer(errs[i]) && unknown(errs[i]))
		if answer == nil || errors.Is(answer, provider.ErrLeaseLost) {
			st.delivery.lane.forgets(st.delivery)
		}
		st.answer(answer)
	}
}

// settleProblem reads what the script says of a run that it did not settle.
func settleProblem(word, why string) error {
	switch word {
	case "lost":
		return provider.ErrLeaseLost
	case "pending":
		return provider.ErrDedupePending
	case "full":
		return provider.ErrDeadFull
	}
	return explained(saidError(why))
}

// isAnswer reports whether a script said so of a run that it did not settle.
func isAnswer(err error) bool {
	return errors.Is(err, provider.ErrLeaseLost) || errors.Is(err, provider.ErrDedupePending) || errors.Is(err, provider.ErrDeadFull)
}

// holdsBy wakes promoters for what a settlement holds.
func (s *store) holdsBy(st *settlement) {
	if st.kind == endRetry && st.after > 0 {
		s.holds.tell(time.Now().Add(st.after))
	}
	for _, e := range st.next {
		if e.held {
			s.holds.tell(time.Now().Add(e.delay))
		}
	}
}

// stretch is where runs are asked for together: a lane, while its group is the same
// one.
type stretch struct {
	lane       *lane
	generation string
}

func (d *delivery) stretch() stretch { return stretch{d.lane, d.generation} }

// stretches groups settlements, and returns them in that order.
func stretches(batch []*settlement) (order []*settlement, places []stretch, counts []int) {
	order = make([]*settlement, 0, len(batch))
	for left := batch; len(left) > 0; {
		at := left[0].delivery.stretch()
		var rest []*settlement
		count := 0
		for i, st := range left {
			switch {
			case st.delivery.stretch() == at:
				order = append(order, st)
				count++
			case rest == nil:
				rest = make([]*settlement, 0, len(left)-i)
				fallthrough
			default:
				rest = append(rest, st)
			}
		}
		places, counts, left = append(places, at), append(counts, count), rest
	}
	return order, places, counts
}

// ackRequest is what the script ack is asked for, and the settlements in the order in
// which it numbers them.
func (d *desk) ackRequest(batch []*settlement) (*request, []*settlement) {
	order, places, counts := stretches(batch)
	r := &request{args: make([]any, 0, 2+6*len(places)+len(batch))}
	r.say(group, d.sub.consumer)
	first := 0
	for i, at := range places {
		part := order[first : first+counts[i]]
		r.keys = append(r.keys, at.lane.keys.stream, at.lane.group.groups, at.lane.group.released)
		r.say(at.lane.queue, at.generation)
		sayRange(r, at.lane, part)
		r.say(digits(len(part)))
		for _, st := range part {
			r.say(&st.delivery.id) // go-redis takes pointers, which need no allocation
		}
		first += counts[i]
	}
	return r, order
}

// settleRequest is what the script settle is asked for, and the settlements in the
// order in which it numbers them.
func (d *desk) settleRequest(batch []*settlement) (*request, []*settlement) {
	s := d.sub.store
	order, places, counts := stretches(batch)
	var r request
	for _, st := range order {
		r.queue(s.keys, scope{}, st.delivery.lane.queue)
		for _, e := range st.next {
			r.queue(s.keys, scope{}, e.queue)
		}
	}
	r.say(group, d.sub.consumer, parked, strconv.Itoa(s.cfg.MaxDead))
	r.sayQueues()
	claims := s.ownClaims()
	first := 0
	for i, at := range places {
		part := order[first : first+counts[i]]
		l := at.lane
		key := r.key(l.group.groups)
		r.key(l.group.released)
		r.key(l.group.looked)
		r.key(l.letters.dead)
		r.key(l.letters.letters)
		r.say(digits(r.queue(s.keys, scope{}, l.queue)), digits(key), at.generation)
		sayRange(&r, l, part)
		r.say(digits(len(part)))
		for _, st := range part {
			r.saySettlement(s.keys, st, claims)
		}
		first += counts[i]
	}
	return &r, order
}

// plain reports whether the run leaves nothing behind.
func (st *settlement) plain(claims bool) bool {
	return st.kind == endAck && len(st.next) == 0 && st.delivery.deliveries == 1 && !st.endsClaim(claims)
}

// endsClaim reports whether the job's claim ends with it.
func (st *settlement) endsClaim(claims bool) bool {
	d := &st.delivery.job.Dedupe
	return claims && d.Key != "" && (st.kind == endDead || st.kind == endAck && d.UntilDone)
}

// saySettlement adds one run, as settle.lua reads it.
func (r *request) saySettlement(k *keyring, st *settlement, claims bool) {
	job := &st.delivery.job
	claim := 0
	if st.endsClaim(claims) {
		claim = r.key(k.claim(scope{}, job.Dedupe.Key))
	}
	r.say(st.delivery.id, deliveriesOf(st.delivery.deliveries))
	switch st.kind {
	case endAck:
		r.say("a", digits(claim), job.ID, digits(len(st.next)))
		for _, e := range st.next {
			r.sayJob(k, e)
		}
	case endRetry:
		if st.after <= 0 {
			r.say("r", st.body)
			return
		}
		r.say("h", st.body, job.ID, st.stamp, microseconds(st.after))
	case endDead:
		r.say("d", st.body, digits(claim), job.ID)
	case endRelease:
		r.say("l")
	default:
		panic(fmt.Sprintf("redisstreams: no kind of settlement: %d", st.kind))
	}
}

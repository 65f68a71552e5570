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
	call     *call
	err      error
}

func (s *settlement) answer(err error) {
	if s.call.open() {
		s.err = err
		s.call.answered()
	}
}

// weight is the bytes that it adds to a script.
func (s *settlement) weight() int {
	n := len(s.body) + len(s.delivery.id)
	for _, e := range s.next {
		n += e.weight()
	}
	return n
}

// settle does a batch of settlements in one step.
func (d *desk) settle(batch []*settlement) {
	s := d.sub.store
	ctx := context.Background() // no caller's binds the others
	r, order := d.settleRequest(batch)
	errs := make([]error, len(order))
	problems, err := d.send(ctx, r)
	var few *tooFewError
	doubt := errors.As(err, &few) || doubtful(err)
	for _, v := range problems {
		p := listOf(v)
		if i := int(numberOf(p[0])) - 1; i < len(errs) {
			errs[i] = settleProblem(textOf(p[1]), textOf(p[2]))
		}
	}
	for i, st := range order {
		if errs[i] == nil {
			errs[i] = err
			if err == nil {
				s.holdsBy(st)
			}
		}
		answer := st.delivery.end(errs[i], doubt)
		if answer == nil || errors.Is(answer, provider.ErrLeaseLost) {
			st.delivery.lane.forgets(st.delivery)
		}
		st.answer(answer)
	}
}

// send runs the script. The queues of next jobs are put on the list before.
func (d *desk) send(ctx context.Context, r *request) ([]any, error) {
	s := d.sub.store
	if err := s.register(ctx, r.names...); err != nil {
		return nil, err
	}
	return s.link.runSafely(ctx, s.replicas, &s.scripts.settle, r.keys, r.args...)
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

// settleRequest is what the script settle is asked for, and the settlements in the
// order in which it numbers them: lane after lane.
func (d *desk) settleRequest(batch []*settlement) (*request, []*settlement) {
	k := d.sub.store.keys
	var r request
	parts := make(map[*lane][]*settlement, len(d.lanes))
	for _, st := range batch {
		l := st.delivery.lane
		parts[l] = append(parts[l], st)
		r.home(k, scope{}, l.queue)
		for _, e := range st.next {
			r.home(k, scope{}, e.queue)
		}
	}
	r.args = make([]any, 0, 8+len(r.names)+3*len(batch)+8*len(parts))
	r.say(group, d.sub.consumer, parked, strconv.Itoa(d.sub.store.cfg.MaxDead))
	r.sayHomes()
	order := make([]*settlement, 0, len(batch))
	for _, l := range d.lanes {
		// Runs of one lane are of one generation, but for the moment in which its
		// group is made anew.
		for part := parts[l]; len(part) > 0; {
			n := 1
			for n < len(part) && part[n].delivery.generation == part[0].delivery.generation {
				n++
			}
			r.saySettlements(d, l, part[:n])
			order, part = append(order, part[:n]...), part[n:]
		}
	}
	return &r, order
}

// saySettlements adds the runs of a lane that are of one generation.
func (r *request) saySettlements(d *desk, l *lane, part []*settlement) {
	k := d.sub.store.keys
	first := r.key(l.post.groups)
	r.key(l.post.released)
	r.key(l.post.looked)
	r.key(l.grave.dead)
	r.key(l.grave.letters)
	r.say(digits(r.home(k, scope{}, l.queue)), digits(first), part[0].delivery.generation)
	ids := make([]string, len(part))
	for i, st := range part {
		ids[i] = st.delivery.id
	}
	r.sayRuns(l, ids)
	claims := d.sub.store.ownClaims()
	for _, st := range part {
		r.saySettlement(k, st, claims)
	}
}

// saySettlement adds one run, as settle.lua reads it.
func (r *request) saySettlement(k keyring, st *settlement, claims bool) {
	job := &st.delivery.job
	claim := 0
	if claims && job.Dedupe.Key != "" && (st.kind == endDead || st.kind == endAck && job.Dedupe.UntilDone) {
		claim = r.key(k.claim(scope{}, job.Dedupe.Key))
	}
	r.say(st.delivery.id, deliveriesOf(st.delivery.deliveries))
	switch st.kind {
	case endAck:
		if claim == 0 && len(st.next) == 0 {
			r.say("a")
			return
		}
		r.say("n", digits(claim), job.ID, digits(len(st.next)))
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

package redisstreams

import (
	"context"
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// errNotOurs is the answer for a delivery of another subscription.
var errNotOurs = errors.New("the delivery is another subscription's")

// Extend is the heartbeat: provider.Subscription.
func (s *subscription) Extend(ctx context.Context, deliveries []provider.Delivery) []error {
	errs := make([]error, len(deliveries))
	if !s.settling.Enter() {
		for i := range errs {
			errs[i] = provider.ErrClosed
		}
		return errs
	}
	defer s.settling.Leave()
	parts := make(map[*desk][]beat)
	for i, pd := range deliveries {
		d, ok := pd.(*delivery)
		if !ok || d.lane.desk.sub != s {
			errs[i] = errNotOurs
			continue
		}
		var wanted bool
		if wanted, errs[i] = d.beats(); wanted {
			parts[d.lane.desk] = append(parts[d.lane.desk], beat{d, &errs[i]})
		}
	}
	for d, part := range parts {
		for len(part) > 0 {
			n := min(len(part), mostPieces)
			d.extend(ctx, part[:n])
			part = part[n:]
		}
	}
	return errs
}

// beat is the heartbeat of one delivery, and where its answer belongs.
type beat struct {
	delivery *delivery
	err      *error
}

// extend sends the heartbeat of deliveries of one desk.
func (d *desk) extend(ctx context.Context, part []beat) {
	var order []stretch
	beats := make(map[stretch][]beat)
	for _, b := range part {
		at := b.delivery.stretch()
		if beats[at] == nil {
			order = append(order, at)
		}
		beats[at] = append(beats[at], b)
	}
	var r request
	var sent []beat
	r.say(group, d.sub.consumer)
	for _, at := range order {
		r.key(at.lane.keys.stream)
		r.key(at.lane.group.groups)
		r.say(at.lane.queue, at.generation)
		sayRange(&r, at.lane, beats[at])
		r.say(digits(len(beats[at])))
		for _, b := range beats[at] {
			r.say(b.delivery.id, deliveriesOf(b.delivery.deliveries))
		}
		sent = append(sent, beats[at]...)
	}
	began := time.Now()
	s := d.sub.store
	missed, err := s.link.run(ctx, &s.scripts.extend, r.keys, r.args...)
	for _, b := range sent {
		*b.err = err
		if err == nil {
			b.delivery.confirm(began)
		}
	}
	for _, n := range missed {
		if i := int(numberOf(n)) - 1; i < len(sent) {
			*sent[i].err = sent[i].delivery.missed()
		}
	}
	for _, b := range sent {
		if errors.Is(*b.err, provider.ErrLeaseLost) {
			b.delivery.lane.forgets(b.delivery)
		}
	}
}

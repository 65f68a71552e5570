package redisstreams

import (
	"context"
	"time"
)

// strays returns jobs that Redis gave to this worker in an answer that never arrived.
// They were not started, so it is as if they came now. Where that is not suspected it
// is looked at now and then all the same: a command that was held up on its way may be
// done long after it was given up.
func (d *desk) strays(ctx context.Context, now time.Time, most int) ([]*delivery, error) {
	due := !now.Before(d.straysAt) || now.Before(d.suspects) && d.takesOver()
	if !due {
		return nil, nil
	}
	d.straysAt = now.Add(strayEvery)
	s := d.sub.store
	var r request
	r.say(group, d.sub.consumer)
	for _, l := range d.lanes {
		r.key(l.keys.stream)
		r.say(digits(l.open()))
	}
	reply, err := s.link.run(ctx, &s.scripts.strays, r.keys, r.args...)
	if err != nil {
		d.straysAt = now
		return nil, err
	}
	var u unpacking // whose leases may have begun long ago
	for i, l := range d.lanes {
		if err := d.adopt(ctx, l, listOf(nth(reply, i)), most-len(u.list), &u); err != nil {
			return d.finish(ctx, &u), err
		}
	}
	return d.finish(ctx, &u), nil
}

// adopt takes those of a lane's entries that nobody here knows.
func (d *desk) adopt(ctx context.Context, l *lane, found []any, most int, u *unpacking) error {
	var r request
	r.keys = []string{l.keys.stream, l.group.released}
	r.say(group, d.sub.consumer)
	for i := 0; i+1 < len(found) && most > 0; i += 2 {
		if id := textOf(found[i]); !l.isKnown(id) {
			r.say(id, deliveriesOf(numberOf(found[i+1])))
			most--
		}
	}
	if len(r.args) == 2 {
		return nil
	}
	if most == 0 {
		d.straysAt = time.Time{} // there may be more
	}
	s := d.sub.store
	reply, err := s.link.run(ctx, &s.scripts.adopt, r.keys, r.args...)
	if err != nil {
		return err
	}
	for _, v := range reply {
		e := listOf(v)
		u.add(l, textOf(e[0]), numberOf(e[1]), numberOf(e[2]), recordOf(listOf(e[3])))
	}
	return nil
}

package redisstreams

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	// refusedWait is when a job is tried again that publish refused.
	refusedWait = time.Second
	// concluding is how long a promoter that is to end may take to forget what it
	// published.
	concluding = 5 * time.Second
)

// reservation is what one promoter publishes.
type reservation struct {
	token  string
	copies []reserved
	jobs   []provider.Job // of these
}

// reserved is one copy of a held job.
type reserved struct {
	queue, id, stamp string
	order            string // its ordering key
	again            string // when it is to be tried again, in milliseconds; empty: it is forgotten
}

// publishDue reserves due jobs of some queues, publishes them, and forgets those that
// are stored.
func (d *delays) publishDue(ctx context.Context, queues []string, publish provider.Publish) error {
	r, odd, err := d.reserve(ctx, queues)
	if err != nil {
		return err
	}
	var done []reserved
	for _, o := range odd {
		if err := d.store.bury(ctx, o.queue, o.body); err != nil {
			return err
		}
		done = append(done, o.reserved)
	}
	within, cancel := context.WithTimeout(ctx, d.store.cfg.PromotionLease*9/10)
	defer cancel() // which tells who published that it is forgotten
	if len(r.jobs) > 0 {
		done = append(done, d.publish(within, r, publish)...)
	}
	if len(done) == 0 {
		return nil
	}
	// What was published should be forgotten even if the promoter is to end.
	apart, end := context.WithTimeout(context.WithoutCancel(ctx), concluding)
	defer end()
	return d.conclude(apart, r.token, done)
}

// publish publishes a reservation, and returns what is to be forgotten or to be tried
// again. What is unknown stays reserved, and comes again after the lease.
func (d *delays) publish(ctx context.Context, r reservation, publish provider.Publish) []reserved {
	d.store.link.point("reserved")
	stored := publish(ctx, r.jobs)
	d.store.link.point("published")
	wait := refusedWait
	if ctx.Err() != nil {
		wait = 0 // refused because of it
	}
	var done []reserved
	for i, c := range r.copies {
		if i >= len(stored) || stored[i].Outcome == provider.OutcomeUnknown {
			continue
		}
		if stored[i].Outcome == provider.OutcomeRefused {
			c.again = strconv.FormatInt(wait.Milliseconds(), 10)
		}
		done = append(done, c)
	}
	return done
}

// oddCopy is a held copy that is no record.
type oddCopy struct {
	reserved
	body string
}

// reserve takes due jobs for one promoter.
func (d *delays) reserve(ctx context.Context, queues []string) (reservation, []oddCopy, error) {
	s := d.store
	taken := reservation{token: rand.Text()}
	var r request
	r.say(strconv.Itoa(mostDue), strconv.Itoa(mostBytes), strconv.FormatInt(s.cfg.PromotionLease.Milliseconds(), 10), taken.token)
	for _, queue := range queues {
		r.queue(s.keys, d.scope, queue)
		r.say(queue)
	}
	reply, err := s.link.run(ctx, &s.scripts.reserve, r.keys, r.args...)
	if err != nil {
		return taken, nil, err
	}
	var odd []oddCopy
	for _, v := range reply {
		list := listOf(v)
		c := reserved{queue: queues[numberOf(list[0])-1], id: textOf(list[1]), stamp: textOf(list[2])}
		if len(list) < 4 {
			s.heldGhosts(c.queue, 1)
			continue
		}
		job, err := provider.Unmarshal([]byte(textOf(list[3])))
		if err != nil {
			odd = append(odd, oddCopy{c, textOf(list[3])})
			continue
		}
		c.order = job.OrderingKey
		taken.copies, taken.jobs = append(taken.copies, c), append(taken.jobs, job)
	}
	return taken, odd, nil
}

// conclude ends reservations.
func (d *delays) conclude(ctx context.Context, token string, done []reserved) error {
	s := d.store
	var r request
	for _, c := range done {
		r.queue(s.keys, d.scope, c.queue)
	}
	r.say(token)
	r.sayQueues()
	for _, c := range done {
		order := 0
		if c.order != "" {
			order = r.key(s.keys.order(d.scope, c.queue, c.order))
		}
		r.say(digits(r.queue(s.keys, d.scope, c.queue)), c.id, c.stamp, digits(order), c.again)
	}
	_, err := s.link.run(ctx, &s.scripts.conclude, r.keys, r.args...)
	return err
}

// bury dead-letters held bytes that are no record, before they are forgotten.
func (s *store) bury(ctx context.Context, queue, body string) error {
	g := s.keys.letters(queue)
	if _, err := s.link.run(ctx, &s.scripts.bury, []string{g.dead, g.letters}, body); err != nil {
		return err
	}
	s.foreign(queue)
	return nil
}

// foreign reports bytes that were no record, once they are on record as such.
func (s *store) foreign(queue string) {
	s.news.emit(provider.Event{Kind: provider.ForeignRecord, Queue: queue, Count: 1, Message: "bytes that are no job were dead-lettered"})
}

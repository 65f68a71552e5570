package redisstreams

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"
)

const (
	// takeOverEvery is how often a worker takes over what others have left.
	takeOverEvery = 1500 * time.Millisecond
	// recent is how long ago another worker may have done so instead.
	recent = 900 * time.Millisecond
	// silent is how long a consumer that has nothing must be silent, beyond its lease,
	// to be taken for dead. One that comes back is made anew by its next read.
	silent = time.Minute
	// strayEvery is how often a worker compares what it has with what it knows, and
	// suspicion how long it does so at each takeover after an answer was lost.
	strayEvery = 10 * time.Second
	suspicion  = 12 * time.Second
)

// desk is where a subscription serves the lanes of one slot.
type desk struct {
	sub     *subscription
	tag     string
	lanes   []*lane
	reading wire
	hearing wire // of the watcher
	settles batcher[*settlement]

	// These are for the goroutine that receives.
	takeOverAt time.Time // when to take over what others have left
	straysAt   time.Time // when to look for strays
	suspects   time.Time // until when an answer may have been lost
	calls      int       // of the script read

	incomplete atomic.Bool // a group may have vanished
	watching   atomic.Bool // a watcher waits for these lanes
}

func newDesk(s *subscription, tag string) *desk {
	d := &desk{sub: s, tag: tag}
	answer := takeOverEvery + s.store.cfg.Timeout
	d.reading = wire{link: s.store.link, key: tag, answer: answer}
	d.hearing = wire{link: s.store.link, key: tag, answer: answer}
	d.settles.flush, d.settles.weigh = d.settle, (*settlement).weight
	return d
}

// open makes the groups of the lanes.
func (d *desk) open(ctx context.Context) error {
	var r request
	r.say(group, rand.Text())
	for _, l := range d.lanes {
		r.keys = append(r.keys, l.keys.stream, l.group.groups, l.group.released)
		r.say(l.queue)
	}
	s := d.sub.store
	reply, err := s.link.run(ctx, &s.scripts.open, r.keys, r.args...)
	if err != nil {
		return err
	}
	for i, l := range d.lanes {
		l.generation = textOf(nth(reply, i))
	}
	return nil
}

// close flushes what is under way and says goodbye. What is not settled stays this
// worker's until its lease ends.
func (d *desk) close(ctx context.Context) error {
	if err := d.settles.wait(ctx); err != nil {
		return err
	}
	d.reading.shut()
	d.hearing.shut()
	var streams []string
	for _, l := range d.lanes {
		streams = append(streams, l.keys.stream)
	}
	s := d.sub.store
	_, _ = s.link.run(ctx, &s.scripts.leave, streams, group, d.sub.consumer) // others will see that it is idle
	return nil
}

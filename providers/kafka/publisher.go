package kafka

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/backstage-go/backstage/runtime/provider"
)

// publisher sends records, those of many calls in one request, and learns of each
// what became of it.
//
// Each partition has one request under way. What may go anywhere goes to one partition
// with all that waited meanwhile, and what comes next to the next partition: spread over
// all of them at once, the requests would be smaller and more. Where one call has many,
// they are spread all the same, or one worker would get all.
type publisher struct {
	store *store
	ctx   context.Context // ends when nothing is sent any more
	stop  context.CancelFunc
	work  sync.WaitGroup // requests that were not answered in their turn

	mu      sync.Mutex
	outlets map[string]*outlet // by topic
}

func newPublisher(s *store) *publisher {
	p := &publisher{store: s, outlets: make(map[string]*outlet)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// send stores records in a topic, and returns when it is known of each what became of
// it, or ctx has ended. It puts outcomes into the parcels.
func (p *publisher) send(ctx context.Context, to target, parcels []*parcel) {
	if len(parcels) == 0 {
		return
	}
	partitions, err := p.store.topics.ready(ctx, to)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		for _, one := range parcels {
			one.outcome, one.err = provider.OutcomeRefused, err
		}
		return
	}
	c := newCall(parcels)
	p.outlet(to, partitions).add(parcels)
	c.wait(ctx, parcels)
}

// outlet returns the way into a topic that has so many partitions.
func (p *publisher) outlet(to target, partitions int) *outlet {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.outlets[to.settings.Topic]
	if o == nil {
		o = &outlet{publisher: p, to: to}
		o.loose.Flush = o.flush
		p.outlets[to.settings.Topic] = o
	}
	o.resize(partitions)
	return o
}

// close ends what is under way. What was not sent is refused, and so is what comes
// later.
func (p *publisher) close() {
	p.stop()
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.outlets))
	p.mu.Unlock()
	for _, o := range all {
		o.idle()
	}
	p.work.Wait()
}

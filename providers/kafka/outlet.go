package kafka

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/backstage-go/backstage/providers/internal/batch"
)

// outlet is the way into one topic.
type outlet struct {
	publisher *publisher
	to        target
	loose     batch.Batcher[*parcel] // what may go anywhere

	mu         sync.Mutex
	partitions []*partitionOutlet
	turn       int
}

// resize follows the number of the topic's partitions.
func (o *outlet) resize(partitions int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := len(o.partitions); i < partitions; i++ {
		at := &partitionOutlet{outlet: o, partition: i}
		at.own.Flush = at.flush
		o.partitions = append(o.partitions, at)
	}
	o.partitions = o.partitions[:partitions]
}

// leastShare is how many of one call go to one partition before another gets some.
const leastShare = 4

// add puts the records of one call on their way.
func (o *outlet) add(parcels []*parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	loose := 0
	for _, p := range parcels {
		if p.key == nil {
			loose++
		}
	}
	n := len(o.partitions)
	share := max(leastShare, (loose+n-1)/n)
	at := 0
	for _, p := range parcels {
		switch {
		case p.key != nil:
			o.partitions[partitionOf(p.key, n)].own.Add(p)
		case loose > leastShare:
			o.partitions[(o.turn+at/share)%n].own.Add(p)
			at++
		default:
			o.loose.Add(p)
		}
	}
	o.turn += (at + share - 1) / share
}

// turnPatience is how long what comes next waits for one partition before it goes to
// another, whose broker may be faster, or there at all.
const turnPatience = time.Second

// flush sends what may go anywhere to the partition whose turn it is.
func (o *outlet) flush(batch []*parcel) {
	at := o.next()
	batch = slices.Clone(batch) // whose place is taken by the next one
	answered := make(chan struct{})
	o.publisher.work.Go(func() {
		defer close(answered)
		at.flush(batch)
	})
	timer := time.NewTimer(turnPatience)
	defer timer.Stop()
	select {
	case <-answered:
	case <-timer.C:
	}
}

// next returns the partition whose turn it is, of those that did not fail a moment ago.
func (o *outlet) next() *partitionOutlet {
	for {
		at, rest := o.nextOf()
		if rest <= 0 || !sleep(o.publisher.ctx, rest) {
			return at
		}
	}
}

// nextOf also returns how long it is not tried, where none is to be tried yet.
func (o *outlet) nextOf() (first *partitionOutlet, rest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range o.partitions {
		at := o.partitions[o.turn%len(o.partitions)]
		o.turn++
		left := at.resting()
		if left <= 0 {
			return at, 0
		}
		if first == nil || left < rest {
			first, rest = at, left
		}
	}
	return first, rest
}

// idle waits until nothing is under way.
func (o *outlet) idle() {
	_ = o.loose.Wait(context.Background())
	o.mu.Lock()
	all := slices.Clone(o.partitions)
	o.mu.Unlock()
	for _, at := range all {
		_ = at.own.Wait(context.Background())
	}
}

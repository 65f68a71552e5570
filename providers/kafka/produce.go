package kafka

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/providers/internal/batch"
	"github.com/backstage-go/backstage/runtime/provider"
)

// partitionOutlet is the way into one partition.
type partitionOutlet struct {
	outlet    *outlet
	partition int
	own       batch.Batcher[*parcel] // what must go here

	busy sync.Mutex // held while a request is under way: there is one at a time

	mu    sync.Mutex
	wait  time.Duration // how long nothing is tried after the last failure
	until time.Time
}

// mostBytes is how much is sent in one request: what a topic takes that was made with
// Kafka's own settings. A larger record goes alone.
const mostBytes = 1_000_000

// flush sends records in their order, until it is known of each what became of it, or
// it has gone another way.
func (at *partitionOutlet) flush(batch []*parcel) {
	at.busy.Lock()
	defer at.busy.Unlock()
	most := mostBytes
	for len(batch) > 0 {
		chunk, taken := cut(batch, most)
		if len(taken) == 0 {
			batch = batch[len(chunk):]
			continue
		}
		f, why := at.produce(taken)
		switch {
		case why == nil:
			land(taken, provider.OutcomeStored, nil)
		case at.outlet.publisher.ctx.Err() != nil && f.fate == notStored:
			land(taken, provider.OutcomeRefused, provider.ErrClosed)
		case f.fate == notStored:
			batch = at.again(batch, taken, why, f)
			continue
		case f.fate == tooLarge && len(taken) > 1:
			most = total(taken) / 2
			back(taken, why)
			continue
		case f.fate == inDoubt:
			land(taken, provider.OutcomeUnknown, why)
		default:
			land(taken, provider.OutcomeRefused, why)
		}
		batch = batch[len(chunk):]
	}
}

// cut returns what fits into one request, at least one record, and which of it
// somebody still wants to be sent.
func cut(batch []*parcel, most int) (chunk, taken []*parcel) {
	size := 0
	for i, p := range batch {
		if size += p.size(); size > most && i > 0 {
			batch = batch[:i]
			break
		}
	}
	taken = make([]*parcel, 0, len(batch))
	for _, p := range batch {
		if p.take() {
			taken = append(taken, p)
		}
	}
	return batch, taken
}

// total is how many bytes records have in a request.
func total(parcels []*parcel) (n int) {
	for _, p := range parcels {
		n += p.size()
	}
	return n
}

// land says of records what became of them.
func land(parcels []*parcel, outcome provider.Outcome, err error) {
	for _, p := range parcels {
		p.land(outcome, err)
	}
}

// back says of records that they are not stored, and may be sent again.
func back(parcels []*parcel, why error) {
	for _, p := range parcels {
		p.back(why)
	}
}

// again looks where records can go that were not stored here, and returns those that
// must go here when this partition has rested.
func (at *partitionOutlet) again(batch, taken []*parcel, why error, f fault) []*parcel {
	back(taken, why)
	at.failed()
	o := at.outlet
	if f.moved {
		o.find()
	}
	if at.gone() {
		o.add(batch)
		return nil
	}
	var stay []*parcel
	for _, p := range batch {
		if p.key != nil {
			stay = append(stay, p)
		} else {
			o.loose.Add(p)
		}
	}
	if len(stay) > 0 {
		sleep(o.publisher.ctx, at.resting())
	}
	return stay
}

// findPatience is how long a partition that failed waits for news of the topic. The
// client asks for them from time to time by itself.
const findPatience = 2 * time.Second

// find learns where the topic's partitions are now, and makes it if it is gone.
func (o *outlet) find() {
	p := o.publisher
	ctx, cancel := context.WithTimeout(p.ctx, findPatience)
	defer cancel()
	p.store.topics.forget(o.to)
	if p.store.topics.refresh(ctx) != nil {
		return
	}
	if partitions, err := p.store.topics.ready(ctx, o.to); err == nil {
		o.resize(partitions)
	}
}

// gone reports whether the topic was made anew with fewer partitions.
func (at *partitionOutlet) gone() bool {
	at.outlet.mu.Lock()
	defer at.outlet.mu.Unlock()
	return at.partition >= len(at.outlet.partitions)
}

// failed lets the partition rest, the longer the more often it failed.
func (at *partitionOutlet) failed() {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.wait = min(max(2*at.wait, firstWait), lastWait)
	at.until = time.Now().Add(at.wait)
}

func (at *partitionOutlet) succeeded() {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.wait, at.until = 0, time.Time{}
}

// resting is how long nothing is tried here.
func (at *partitionOutlet) resting() time.Duration {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.until.IsZero() {
		return 0
	}
	return time.Until(at.until)
}

// produce makes one request. An error comes with what it means for its records.
func (at *partitionOutlet) produce(parcels []*parcel) (fault, error) {
	o := at.outlet
	p := o.publisher
	records := &recordReader{parcels: parcels}
	r, err := p.store.client.Produce(p.ctx, &kafkago.ProduceRequest{
		Topic: o.to.settings.Topic, Partition: at.partition, RequiredAcks: kafkago.RequireAll, Records: records,
	})
	if err == nil {
		err = r.Error
	}
	if err == nil {
		at.succeeded()
		p.store.news.alarm(o.to.queue, nil)
		return fault{}, nil
	}
	f := faultOf(err)
	why := explained(err)
	switch {
	case f.code != 0 || f.fate == notStored:
	case !records.begun.Load():
		f.fate, f.moved = notStored, true // the broker may be gone for good
	case errors.Is(err, errUnsent):
		f.fate = notStored
	default:
		why = &Error{Problem: "the connection ended before the broker answered", Remedy: "the same id may be tried again", Err: err}
	}
	if f.blocked {
		p.store.news.alarm(o.to.queue, why)
	}
	return f, why
}

// recordReader shows parcels to the client, and knows whether it has begun to write
// them.
type recordReader struct {
	parcels []*parcel
	next    int
	begun   atomic.Bool
}

// ReadRecord returns the next one, or io.EOF.
func (r *recordReader) ReadRecord() (*kafkago.Record, error) {
	r.begun.Store(true)
	if r.next == len(r.parcels) {
		return nil, io.EOF
	}
	record := r.parcels[r.next].record()
	r.next++
	return &record, nil
}

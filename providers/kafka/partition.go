package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/providers/kafka/internal/tracker"
	"github.com/backstage-go/backstage/runtime/provider"
)

// partition is one that this worker has. It ends when others have it, and a later one
// of the same number is another.
type partition struct {
	sub  *subscription
	lane *lane
	at   spot
	ctx  context.Context // of its goroutine
	stop context.CancelFunc
	lost chan struct{} // closed when others have it
	more chan struct{} // has one when its goroutine has something to do

	// The others are guarded by the subscription.
	tracker  *tracker.Tracker // nil until it is known what is on record
	held     map[int64]*record
	bytes    int      // of what is held and does not run
	rounds   []*round // settlements that wait for a commit
	left     int64    // what is before that offset was left by a dead worker
	wanted   int      // how many Receive would start now
	limbo    bool     // the membership that it came with is lost
	back     bool     // and the next one has it again
	emptying bool     // nothing is started, so that it can be given up
	leaving  bool     // nothing runs any more, and that is put on record
	paused   bool     // an event has told so
	pace     pace
	swept    sweep
	stuck    string // the metadata that the broker did not take
	err      error  // why nothing is read
}

// round are the settlements that one commit puts on record.
type round struct {
	commit int64
	done   chan struct{}
}

func newPartition(s *subscription, l *lane, at spot) *partition {
	p := &partition{sub: s, lane: l, at: at, lost: make(chan struct{}), more: make(chan struct{}, 1), held: make(map[int64]*record)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// wake lets the partition's goroutine look what is to do.
func (p *partition) wake() { notify(p.more) }

// run reads the partition as long as it is this worker's.
func (p *partition) run() {
	for wait := firstWait; p.ctx.Err() == nil; {
		next, err := p.step()
		p.sub.mu.Lock()
		p.err = err
		p.sub.mu.Unlock()
		if err != nil {
			notify(p.sub.commit.heard)
		}
		switch {
		case err == nil:
			wait = firstWait
			if !next {
				select {
				case <-p.more:
				case <-p.ctx.Done():
				}
			}
		default:
			if !sleep(p.ctx, wait) {
				return
			}
			wait = min(2*wait, lastWait)
		}
	}
}

// step does what is to do next. It returns false if there is nothing.
func (p *partition) step() (more bool, err error) {
	p.sub.mu.Lock()
	loaded, limbo, back := p.tracker != nil, p.limbo, p.back
	p.sub.mu.Unlock()
	switch {
	case limbo && back, !loaded && !limbo:
		return true, p.load()
	case limbo || !p.roomy():
		return false, nil
	}
	return true, p.read()
}

// load learns what the group has on record of the partition: of a new one, or of one
// that may have been another's for a while.
func (p *partition) load() error {
	at, err := p.sub.member.group.positions(p.ctx, p.at.topic, p.at.number)
	if err != nil {
		return explained(err)
	}
	log, err := p.log()
	if err != nil {
		return err
	}
	on := at[p.at.number]
	p.sub.mu.Lock()
	defer p.sub.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil
	}
	if p.tracker != nil {
		p.resumeLocked(on)
		return nil
	}
	p.limbo, p.back = false, false
	return p.beginLocked(on, log)
}

// log says where the partition's log begins and ends.
func (p *partition) log() (kafkago.PartitionOffsets, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.sub.store.cfg.Timeout)
	defer cancel()
	all, err := p.sub.store.bounds(ctx, p.at.topic, p.at.number)
	if err != nil {
		return kafkago.PartitionOffsets{}, explained(err)
	}
	return all[p.at.number], nil
}

// resumeLocked goes on with a partition that nobody else has had meanwhile, or ends it
// and begins another.
func (p *partition) resumeLocked(on position) {
	if p.tracker.Resume(on.offset, on.metadata) {
		p.limbo, p.back = false, false
		p.sub.commit.kick()
		return
	}
	p.sub.renewLocked(p)
}

// renewLocked ends a partition and all runs of it, and begins it anew.
func (s *subscription) renewLocked(p *partition) {
	s.loseLocked(p)
	s.addLocked(p.lane, p.at)
}

// beginLocked begins with what is on record.
func (p *partition) beginLocked(on position, log kafkago.PartitionOffsets) (err error) {
	config := tracker.Config{Owner: rand.Uint32()}
	switch {
	case on.offset < 0: // nothing, or it has expired: the log begins with what is not settled
		p.tracker = tracker.New(config, log.FirstOffset)
		if log.FirstOffset > 0 {
			p.tell(provider.GroupRecreated, 0, "the group had nothing on record of it; it is read from where its log begins", nil)
		}
	case on.offset > log.LastOffset:
		p.tracker = tracker.New(config, log.FirstOffset)
		p.tell(provider.GroupRecreated, 0, fmt.Sprintf("the group was at offset %d and the log ends at %d: the topic was made anew, and is read from its beginning", on.offset, log.LastOffset), nil)
	default:
		p.tracker, err = tracker.Load(config, on.offset, on.metadata)
		if errors.Is(err, tracker.ErrForeign) {
			p.tracker, err = tracker.New(config, on.offset), nil
			p.tell(provider.Degraded, 0, "somebody else has set the group's offset; what was settled after it runs again", nil)
		}
		if err != nil {
			p.tracker = nil
			return fmt.Errorf("what the group has on record: %w", err)
		}
	}
	p.left = p.tracker.CrashLine()
	p.skipLocked(log.FirstOffset)
	p.sub.commit.kick()
	notify(p.sub.commit.heard)
	return nil
}

// skipLocked goes on where the log begins now, and tells what was lost.
func (p *partition) skipLocked(start int64) {
	if lost := p.tracker.Skip(start); lost.Unsettled > 0 {
		p.tell(provider.RetentionOvertaken, lost.Unsettled,
			fmt.Sprintf("the broker has deleted the offsets from %d to %d, which were not settled", lost.From, lost.To-1), errOvertaken)
	}
}

// errOvertaken is why jobs are gone that nobody has settled.
var errOvertaken = errors.New("the topic's retention is too short, or somebody has deleted records: set retention.ms and retention.bytes to -1")

// tell reports an event of the partition.
func (p *partition) tell(kind provider.Kind, count int64, message string, err error) {
	p.sub.store.news.emit(provider.Event{Kind: kind, Queue: p.lane.queue, Count: count, Err: err,
		Message: fmt.Sprintf("partition %d of %s: %s", p.at.number, p.at.topic, message)})
}

const (
	// mostAhead is how many records are read ahead of those that were started.
	mostAhead = 1000
	// mostHeld bounds the bytes of records that were read and do not run.
	mostHeld = 32 << 20
)

// roomy reports whether more is to be read.
func (p *partition) roomy() bool {
	s := p.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.leaving {
		return false
	}
	why := ""
	switch p.tracker.Paused() {
	case tracker.WindowFull:
		why = "too many records wait behind the first that is not settled"
	case tracker.MetadataFull:
		why = "what is settled out of order has no room in the group's metadata"
	default:
		if p.bytes >= mostHeld {
			why = "records that wait take too much memory"
		}
	}
	p.pausedLocked(why)
	return why == "" && p.tracker.Startable() < max(mostAhead, 2*s.opts.MaxUnsettled)
}

// pausedLocked tells when the partition is stopped by a bound, and when it goes on.
func (p *partition) pausedLocked(why string) {
	switch {
	case why != "" && !p.paused:
		p.tell(provider.Paused, 0, why, nil)
	case why == "" && p.paused:
		p.tell(provider.Resumed, 0, "it goes on", nil)
	}
	p.paused = why != ""
}

// read reads what comes next.
func (p *partition) read() error {
	p.sub.mu.Lock()
	from := p.tracker.Next()
	p.sub.mu.Unlock()
	got, err := p.sub.store.fetch(p.ctx, p.at, from, longestPoll)
	if err != nil && p.ctx.Err() == nil {
		return p.failed(err)
	}
	p.arrive(got)
	return nil
}

// arrive takes what was read, if it was not read before.
func (p *partition) arrive(got fetched) {
	s := p.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ctx.Err() != nil || p.tracker == nil {
		return
	}
	added := false
	for i := range got.records {
		r := &got.records[i]
		switch p.tracker.Add(r.offset, r.job.OrderingKey) {
		case tracker.Kept:
			p.held[r.offset] = r
			p.bytes += r.size
			added = true
		case tracker.Full:
			return
		}
	}
	if got.skip && p.tracker.Next() == got.from {
		p.tracker.Skip(got.from + 1)
	}
	if added && s.wants {
		notify(s.arrived)
	}
}

// failed decides what to do when a partition cannot be read.
func (p *partition) failed(err error) error {
	s := p.sub
	switch {
	case errors.Is(err, kafkago.OffsetOutOfRange):
		log, err := p.log()
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch next := p.tracker.Next(); {
		case p.ctx.Err() != nil:
		case next > log.LastOffset: // it was made anew, or brokers have forgotten its end
			s.renewLocked(p)
		case next < log.FirstOffset:
			p.skipLocked(log.FirstOffset)
			s.commit.kick()
		default:
			return explained(kafkago.OffsetOutOfRange)
		}
		return nil
	case errors.Is(err, kafkago.UnknownTopicOrPartition):
		return p.remake(err)
	case faultOf(err).moved:
		ctx, cancel := context.WithTimeout(p.ctx, s.store.cfg.Timeout)
		defer cancel()
		return errors.Join(explained(err), s.store.topics.refresh(ctx))
	}
	return explained(err)
}

// remake makes a topic again that somebody has deleted, and reads it from its
// beginning.
func (p *partition) remake(gone error) error {
	s := p.sub
	ctx, cancel := context.WithTimeout(p.ctx, s.store.cfg.Timeout)
	defer cancel()
	if err := s.store.topics.refresh(ctx); err != nil {
		return explained(err)
	}
	if n, err := s.store.topics.look(ctx, p.at.topic); err != nil || n > p.at.number {
		return errors.Join(explained(gone), err) // it is there: the broker is late
	}
	s.store.topics.forget(s.store.jobsOf(p.lane.queue))
	if _, err := s.store.topics.ready(ctx, s.store.jobsOf(p.lane.queue)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ctx.Err() == nil {
		p.tell(provider.GroupRecreated, 0, "the topic was deleted, and is made again", nil)
		s.renewLocked(p)
	}
	return nil
}

// roundLocked is where the settlements of a commit wait.
func (p *partition) roundLocked(commit int64) *round {
	if n := len(p.rounds); n > 0 && p.rounds[n-1].commit == commit {
		return p.rounds[n-1]
	}
	r := &round{commit: commit, done: make(chan struct{})}
	if p.tracker.Final(commit) {
		close(r.done)
		return r
	}
	p.rounds = append(p.rounds, r)
	return r
}

// finalLocked tells those whose settlements are on record.
func (p *partition) finalLocked() {
	n := 0
	for ; n < len(p.rounds) && p.tracker.Final(p.rounds[n].commit); n++ {
		close(p.rounds[n].done)
	}
	p.rounds = append(p.rounds[:0], p.rounds[n:]...)
}

// millis is a time as the tracker has it.
func millis(t time.Time) int64 { return t.UnixMilli() }

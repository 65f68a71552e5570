package kafka

import (
	"context"
	"errors"
	"runtime"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/providers/kafka/internal/tracker"
	"github.com/backstage-go/backstage/runtime/provider"
)

// committer puts on record what the trackers of a subscription have to say, all of it
// in one request at a time. Who waits for a settlement waits for the request that has
// it, and what comes meanwhile is in the next one.
type committer struct {
	sub   *subscription
	some  chan struct{} // has one when there may be something to say
	heard chan struct{} // has one when something was answered, or a partition has ended
	ctx   context.Context
	stop  context.CancelFunc
	wait  time.Duration // after what the broker did not take
	until membership    // guarded by the subscription: nothing is said as this member any more
}

func newCommitter(s *subscription) *committer {
	c := &committer{sub: s, some: make(chan struct{}, 1), heard: make(chan struct{}, 1)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// kick lets the committer look.
func (c *committer) kick() { notify(c.some) }

// notify puts one into a channel that has room for one, if there is none.
func notify(some chan struct{}) {
	select {
	case some <- struct{}{}:
	default:
	}
}

// run commits until the subscription has ended.
func (c *committer) run() {
	for {
		select {
		case <-c.some:
		case <-c.ctx.Done():
			return
		}
		runtime.Gosched() // so that those who are about to settle something are in this commit
		for c.round() {
			if c.wait > 0 && !sleep(c.ctx, c.wait) {
				return
			}
		}
	}
}

// round makes one request, if there is anything to say. It reports whether there was.
func (c *committer) round() bool {
	as, commits := c.collect()
	if len(commits) == 0 {
		return false
	}
	positions := make(map[spot]position, len(commits))
	for p, commit := range commits {
		positions[p.at] = position{offset: commit.Offset, metadata: commit.Metadata}
	}
	c.sub.store.point("commit")
	errs := c.sub.member.group.commit(c.ctx, as, positions)
	c.sub.store.point("committed")
	c.answered(as, commits, errs)
	return true
}

// collect asks the trackers.
func (c *committer) collect() (membership, map[*partition]tracker.Commit) {
	s := c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	as := s.member.now
	if as.id == "" || as == c.until {
		return as, nil
	}
	now := time.Now()
	commits := make(map[*partition]tracker.Commit)
	for _, p := range s.parts {
		if p.tracker == nil || p.limbo {
			continue
		}
		p.tracker.Ahead(p.wanted + p.pace.ahead(now, 2*s.opts.MaxUnsettled))
		commit, ok := p.tracker.Commit(millis(now), p.wanted)
		switch {
		case !ok:
		case commit.Metadata == p.stuck && p.stuck != "": // it is never sent again as it was
			p.tracker.Refused(commit.Number)
		default:
			commits[p] = commit
		}
	}
	return as, commits
}

// answered tells the trackers what became of their commits.
func (c *committer) answered(as membership, commits map[*partition]tracker.Commit, errs map[spot]error) {
	s := c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	c.wait = 0
	for p, commit := range commits {
		err := errs[p.at]
		if s.parts[p.at] != p {
			continue // others have it
		}
		switch outcome(err) {
		case accepted:
			p.tracker.Accepted(commit.Number)
			p.pace.committed(now)
			p.stuck = ""
			p.finalLocked()
			p.wake()
			s.sweepLocked(p)
		case refusedOnce:
			p.tracker.Refused(commit.Number)
			c.wait = lastWait / 10
		case refusedAsWritten:
			p.tracker.Refused(commit.Number)
			p.stuck = commit.Metadata
			p.tell(provider.Degraded, int64(len(commit.Metadata)), "the broker does not take so much metadata: set offset.metadata.max.bytes to 4096", err)
		case refusedMember:
			p.tracker.Refused(commit.Number)
			c.until = as
			s.member.rejoin()
		default:
			// It may arrive late, after another one: only a new generation shuts it out.
			p.tracker.Unknown(commit.Number)
			c.until = as
			s.member.failedLocked(err)
			s.member.rejoin()
		}
	}
	if s.wants {
		notify(s.arrived)
	}
	s.partLocked()
	notify(c.heard)
}

// answer is what an answer means for a commit.
type answer int

const (
	accepted         answer = iota
	doubtful                // it may be on record or not
	refusedOnce             // it is not, and may be tried again
	refusedAsWritten        // it is not, and never will be as it is
	refusedMember           // it is not, because there is a newer generation, or soon will be
)

func outcome(err error) answer {
	switch {
	case err == nil:
		return accepted
	case errors.Is(err, kafkago.RebalanceInProgress), errors.Is(err, kafkago.IllegalGeneration), errors.Is(err, kafkago.UnknownMemberId):
		return refusedMember
	case errors.Is(err, kafkago.OffsetMetadataTooLarge):
		return refusedAsWritten
	case errors.Is(err, kafkago.NotCoordinatorForGroup), errors.Is(err, kafkago.GroupCoordinatorNotAvailable), errors.Is(err, kafkago.GroupLoadInProgress),
		errors.Is(err, kafkago.UnknownTopicOrPartition), errors.Is(err, kafkago.TopicAuthorizationFailed), errors.Is(err, kafkago.GroupAuthorizationFailed):
		return refusedOnce
	}
	return doubtful
}

// leave puts on record that the subscription ends, with what still runs. It returns
// when that is so for all partitions, or ctx has ended.
func (c *committer) leave(ctx context.Context) error {
	for c.stays() {
		c.kick()
		select {
		case <-c.heard:
		case <-ctx.Done():
			return waited(ctx, c.sub.hears())
		}
	}
	return nil
}

// stays reports whether there is a partition that is not left yet.
func (c *committer) stays() bool {
	s := c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	stays := false
	for _, p := range s.parts {
		if p.tracker != nil {
			p.tracker.Leave()
			stays = stays || !p.tracker.Left()
		}
	}
	return stays
}

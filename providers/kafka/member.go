package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// member is a subscription's membership of the group. One goroutine takes part in one
// generation after the other, another tells the coordinator that the process lives.
type member struct {
	sub    *subscription
	group  *group
	topics []string
	every  time.Duration // between two heartbeats

	again  chan struct{} // has one when the next generation is to begin
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	// Guarded by the subscription.
	id      string     // by which the coordinator knows it, perhaps
	now     membership // id "" before the first generation, and when it is lost
	beating membership // of which heartbeats are: the same, or the generation that begins
	joining bool
	alive   time.Time     // when a request was sent that the coordinator answered as a member's
	heard   chan struct{} // closed at the next answer
	err     error         // why it is no member
}

const (
	// shortestSession is what brokers allow unless group.min.session.timeout.ms is set.
	shortestSession = 6 * time.Second
	// sessionSlack is how much longer than its lease a session may be, so that what a
	// dead worker left is taken over within five seconds more than a lease.
	sessionSlack = 3 * time.Second
	// mostBeats bounds how long it takes until a member hears of a new generation.
	mostBeats = 500 * time.Millisecond
)

// sessionOf is the session that follows from a lease.
func sessionOf(lease time.Duration) time.Duration {
	return max(lease, min(shortestSession, lease+sessionSlack)).Round(time.Millisecond)
}

func newMember(sub *subscription, topics []string) *member {
	s, session := sub.store, sessionOf(sub.opts.Lease)
	m := &member{
		sub: sub, topics: topics, again: make(chan struct{}, 1), heard: make(chan struct{}), every: min(mostBeats, session/6),
		group: &group{client: &kafkago.Client{Addr: s.client.Addr, Transport: s.client.Transport},
			id: s.cfg.Group, session: session, answer: s.cfg.Timeout, prompt: min(s.cfg.Timeout, session/3)},
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// start begins the membership. When the first generation has begun, or can never, first
// is told.
func (m *member) start(first chan<- error) {
	m.work.Go(func() { m.run(m.ctx, first) })
	m.work.Go(func() { m.beats(m.ctx) })
}

// close ends the membership, and tells the coordinator.
func (m *member) close(ctx context.Context) {
	m.cancel()
	m.work.Wait()
	m.sub.mu.Lock()
	id := m.id
	m.sub.mu.Unlock()
	if id != "" {
		_ = m.group.leave(ctx, id) // or it learns it from silence
	}
}

// run takes part in generations until ctx ends.
func (m *member) run(ctx context.Context, first chan<- error) {
	for wait := firstWait; ctx.Err() == nil; {
		err := m.enter(ctx)
		if first != nil && (err == nil || m.refused(err) != nil) {
			first <- m.refused(err)
			first = nil
		}
		switch {
		case err == nil:
			wait = firstWait
			m.wait(ctx)
		case errors.Is(err, kafkago.MemberIDRequired), errors.Is(err, kafkago.RebalanceInProgress):
		case errors.Is(err, kafkago.UnknownMemberId):
			m.lose()
		default:
			m.failed(err)
			if !sleep(ctx, wait) {
				return
			}
			wait = min(2*wait, lastWait)
		}
	}
}

// enter takes part in the next generation.
func (m *member) enter(ctx context.Context) error {
	id := m.begin()
	defer m.began()
	j, err := m.group.join(ctx, id, m.sub.claim())
	m.joined(j, err == nil)
	if err != nil {
		return err
	}
	var shares map[string]*share
	var partitions map[string]int
	if len(j.claims) > 0 {
		if partitions, err = m.count(ctx, j.claims); err != nil {
			return err
		}
		shares = assign(j.claims, partitions)
	}
	sent := time.Now()
	owned, told, err := m.group.sync(ctx, j.membership, shares, partitions)
	if err != nil {
		return err
	}
	m.lives(sent)
	m.sub.adopt(j.membership, owned, told)
	return nil
}

// joined takes note of what the coordinator said.
func (m *member) joined(j joined, in bool) {
	m.sub.mu.Lock()
	defer m.sub.mu.Unlock()
	if j.id != "" {
		m.id = j.id
	}
	if in {
		m.beating = j.membership
	}
}

// count returns how many partitions the topics have that somebody wants to read.
func (m *member) count(ctx context.Context, claims []claim) (map[string]int, error) {
	partitions := make(map[string]int)
	for _, c := range claims {
		for _, topic := range c.topics {
			partitions[topic] = 0
		}
	}
	topics, fresh := m.sub.store.topics, false
	for topic := range partitions {
		n, err := topics.look(ctx, topic)
		if err == nil && n == 0 && !fresh { // it may be new
			fresh = true
			if err = topics.refresh(ctx); err == nil {
				n, err = topics.look(ctx, topic)
			}
		}
		if err != nil {
			return nil, err
		}
		partitions[topic] = n
	}
	return partitions, nil
}

// wait returns when the next generation is to begin.
func (m *member) wait(ctx context.Context) {
	select {
	case <-m.again:
	case <-ctx.Done():
	}
}

// rejoin asks for the next generation.
func (m *member) rejoin() { notify(m.again) }

// beats tells the coordinator that the member lives, until ctx ends.
func (m *member) beats(ctx context.Context) {
	ticker := time.NewTicker(m.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now, joining := m.state()
		if now.id == "" {
			continue
		}
		sent := time.Now()
		err := m.group.beat(ctx, now)
		switch {
		case err == nil:
			m.lives(sent)
			m.sub.balance()
		case errors.Is(err, kafkago.RebalanceInProgress):
			m.lives(sent)
			fallthrough
		case errors.Is(err, kafkago.UnknownMemberId), errors.Is(err, kafkago.IllegalGeneration):
			if is, _ := m.state(); !joining && is == now {
				m.rejoin() // which is told whether it is a member
			}
		case ctx.Err() == nil:
			m.failed(err)
		}
	}
}

// state returns what the member is known by.
func (m *member) state() (as membership, joining bool) {
	m.sub.mu.Lock()
	defer m.sub.mu.Unlock()
	return m.beating, m.joining
}

// begin takes note that the member joins, and returns the id to join with.
func (m *member) begin() string {
	m.sub.mu.Lock()
	defer m.sub.mu.Unlock()
	m.joining = true
	select {
	case <-m.again: // this is the generation that was asked for
	default:
	}
	return m.id
}

func (m *member) began() {
	m.sub.mu.Lock()
	defer m.sub.mu.Unlock()
	m.joining = false
}

// lives takes note that the coordinator has answered.
func (m *member) lives(sent time.Time) {
	m.sub.mu.Lock()
	defer m.sub.mu.Unlock()
	m.alive, m.err = sent, nil
	m.sub.store.news.reached(m.where())
	m.hearLocked()
}

// where is what cannot be reached when the coordinator does not answer.
func (m *member) where() string { return "the head of group " + m.group.id }

// hearLocked lets those go on who wait for news of the membership.
func (m *member) hearLocked() {
	close(m.heard)
	m.heard = make(chan struct{})
}

// failed takes note of why the coordinator did not answer.
func (m *member) failed(err error) {
	m.sub.mu.Lock()
	defer m.sub.mu.Unlock()
	m.failedLocked(err)
}

func (m *member) failedLocked(err error) {
	m.err = err
	if broken(err) {
		m.sub.store.news.lost(m.where(), err)
	}
}

// lose takes note that the coordinator does not know the member any more. Whether others
// have what it had, the next generation tells.
func (m *member) lose() {
	m.sub.mu.Lock()
	defer m.sub.mu.Unlock()
	m.id, m.now, m.beating = "", membership{}, membership{}
	for _, p := range m.sub.parts {
		p.limbo, p.back = true, false
	}
	m.hearLocked()
}

// refused says that a member can never be in the group as it is configured.
func (m *member) refused(err error) error {
	switch {
	case errors.Is(err, kafkago.InvalidSessionTimeout):
		return setupError(fmt.Sprintf("a lease of %v needs a session of %v, which the brokers do not allow", m.sub.opts.Lease, m.group.session),
			"choose a lease between group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers, 6s to 30m unless they are set")
	case errors.Is(err, kafkago.InconsistentGroupProtocol):
		return setupError(fmt.Sprintf("the group %s has members that are no workers of Backstage", m.group.id), "choose another Config.Group")
	case errors.Is(err, kafkago.InvalidGroupId):
		return setupError(fmt.Sprintf("%q is no name of a group", m.group.id), "choose another Config.Group")
	case errors.Is(err, kafkago.GroupAuthorizationFailed), errors.Is(err, kafkago.TopicAuthorizationFailed):
		return setupError(fmt.Sprintf("the brokers do not let this program into the group %s: %v", m.group.id, err),
			"allow READ for the group and for the topics of its queues")
	}
	return nil
}

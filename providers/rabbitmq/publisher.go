package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// publisher sends messages and learns of each what became of it. Whoever has a
// message writes it himself; the connection gathers the writes, and nobody waits for
// another one's confirm.
type publisher struct {
	link *link
	news *news
	late sync.WaitGroup // of confirms that nobody waits for any more, and outlets

	mu      sync.Mutex
	outlet  *outlet
	blocked error         // why the broker takes nothing; nil if it does
	err     error         // why there is no outlet
	changed chan struct{} // closed at the next change
}

// mostInFlight is how many messages may be sent and not confirmed. The client walks
// through all of them for some confirms.
const mostInFlight = 1000

// outlet is a channel on which the broker confirms, from its opening to its end.
type outlet struct {
	conn   *connection
	ch     *amqp.Channel
	window chan struct{} // has one for each message that is not confirmed
	turn   chan struct{} // who has its one writes
	gone   chan struct{} // closed when the channel has ended
	why    error         // read after gone
	sent   uint64        // guarded by turn

	some    atomic.Bool // something was returned
	mu      sync.Mutex
	returns map[string]string // why, by correlation id
}

func newPublisher(l *link, n *news) *publisher {
	p := &publisher{link: l, news: n, changed: make(chan struct{})}
	p.late.Go(p.keep)
	return p
}

// keep opens an outlet on each connection of the link, and another one when one ends.
func (p *publisher) keep() {
	var last *connection
	for {
		conn, err := p.link.up(p.link.closing)
		if err != nil {
			return
		}
		if conn != last {
			p.watch(conn)
			last = conn
		}
		o, err := p.open(conn)
		p.set(func() { p.outlet, p.err = o, err })
		if err != nil {
			if !sleep(p.link.closing, firstWait) {
				return
			}
			continue
		}
		<-o.gone
		p.set(func() { p.outlet, p.err = nil, errChannel })
		if !sleep(p.link.closing, firstWait/10) {
			return
		}
	}
}

// errChannel is why jobs wait while the channel is opened again.
var errChannel = errors.New("the channel for publishing is being opened")

func (p *publisher) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// open opens an outlet.
func (p *publisher) open(conn *connection) (*outlet, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, explained(err)
	}
	if err := ch.Confirm(false); err != nil {
		return nil, explained(err)
	}
	o := &outlet{conn: conn, ch: ch, returns: make(map[string]string),
		window: make(chan struct{}, mostInFlight), turn: make(chan struct{}, 1), gone: make(chan struct{})}
	// The client hands a return to the first and then to the second, and reads the
	// confirm that belongs to it only when both have it: so a message's return is on
	// record when its confirm comes.
	first, second := ch.NotifyReturn(make(chan amqp.Return)), ch.NotifyReturn(make(chan amqp.Return))
	ends := ch.NotifyClose(make(chan *amqp.Error, 1))
	p.late.Go(func() {
		for r := range first {
			o.note(r)
			<-second
		}
	})
	p.late.Go(func() {
		o.why = reason(<-ends)
		close(o.gone)
	})
	return o, nil
}

// note puts a return on record.
func (o *outlet) note(r amqp.Return) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.returns[r.CorrelationId] = r.ReplyText
	o.some.Store(true)
}

// returned reports whether a message that was confirmed was returned before.
func (o *outlet) returned(id string) (why string, was bool) {
	if !o.some.Load() {
		return "", false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	why, was = o.returns[id]
	delete(o.returns, id)
	return why, was
}

// watch learns whether the broker takes anything on a connection.
func (p *publisher) watch(conn *connection) {
	alarms := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	p.late.Go(func() {
		for b := range alarms {
			var why error
			if b.Active {
				why = &Error{Problem: "it takes no jobs because of an alarm: " + b.Reason, Remedy: "give it more memory or disk, or let workers catch up; settlements go on"}
			}
			p.set(func() { p.blocked = why })
			p.news.alarm(b.Active, why)
		}
		p.set(func() { p.blocked = nil })
		p.news.alarm(false, nil)
	})
}

// state returns the outlet to use, or why there is none, and what is closed when that
// changes.
func (p *publisher) state() (*outlet, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.blocked != nil:
		return nil, p.changed, p.blocked
	case p.outlet == nil && p.err == nil:
		return nil, p.changed, errChannel
	}
	return p.outlet, p.changed, p.err
}

// ready waits for an outlet.
func (p *publisher) ready(ctx context.Context) (*outlet, error) {
	for {
		o, changed, why := p.state()
		if o != nil && !o.conn.over() {
			return o, nil
		}
		select {
		case <-changed:
		case <-p.link.closing.Done():
			return nil, provider.ErrClosed
		case <-ctx.Done():
			if _, _, down := p.link.state(); down != nil {
				why = down
			}
			return nil, waited(ctx, why)
		}
	}
}

// waited says why a call could not wait longer, and for what.
func waited(ctx context.Context, why error) error {
	if why == nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ctx.Err(), why)
}

// parcel is one message on its way.
type parcel struct {
	exchange, key string
	message       amqp.Publishing

	outlet  *outlet
	confirm *amqp.DeferredConfirmation
	outcome provider.Outcome
	err     error
	again   bool // it was not stored, and may be if it is tried again
	absent  bool // because there was no queue for it
}

// begin sends a parcel; false says that the window is full. Nothing waits for its
// confirm after an error.
func (p *publisher) begin(ctx context.Context, m *parcel, wait bool) (bool, error) {
	for {
		o, err := p.ready(ctx)
		if err != nil {
			return true, err
		}
		if !wait {
			select {
			case o.window <- struct{}{}:
			default:
				return false, nil
			}
		} else {
			select {
			case o.window <- struct{}{}:
			case <-o.gone:
				continue
			case <-ctx.Done():
				return true, waited(ctx, errWindow)
			}
		}
		sent, err := o.send(ctx, m)
		if sent {
			return true, nil
		}
		<-o.window
		if err != nil {
			return true, err
		}
	}
}

// errWindow is what a call waits for when the broker confirms nothing.
var errWindow = errors.New("the broker has confirmed none of the jobs that are on their way")

// send writes a parcel. Neither sent nor an error: the channel ended before.
func (o *outlet) send(ctx context.Context, m *parcel) (bool, error) {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-o.turn }()
	if err := o.conn.wire.room(ctx); err != nil {
		if ctx.Err() != nil {
			return false, waited(ctx, errRoom)
		}
		<-o.gone
		return false, nil
	}
	o.sent++
	m.message.CorrelationId = strconv.FormatUint(o.sent, 10)
	confirm, err := o.ch.PublishWithDeferredConfirm(m.exchange, m.key, true, false, m.message)
	switch {
	case errors.Is(err, amqp.ErrClosed):
		<-o.gone
		return false, nil // the whole of it was not written
	case err != nil:
		return false, explained(err)
	}
	m.outlet, m.confirm = o, confirm
	return true, nil
}

// errRoom is what a call waits for when the network or the broker takes nothing.
var errRoom = errors.New("the connection takes no more")

// end waits for what became of a parcel that was sent.
func (p *publisher) end(ctx context.Context, m *parcel) {
	select {
	case <-m.confirm.Done():
	case <-ctx.Done():
		if !m.soon() {
			m.outcome, m.err = provider.OutcomeUnknown, fmt.Errorf("sent and not confirmed yet: %w", ctx.Err())
			confirm, window := m.confirm, m.outlet.window
			p.late.Go(func() {
				<-confirm.Done()
				<-window
			})
			return
		}
	}
	<-m.outlet.window
	m.conclude()
}

// patience is how long a call whose context has ended waits for an answer that is
// under way: most are.
const patience = 250 * time.Millisecond

// soon waits for a confirm that much.
func (m *parcel) soon() bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-m.confirm.Done():
		return true
	case <-timer.C:
		return false
	}
}

// conclude reads the broker's answer.
func (m *parcel) conclude() {
	why, returned := m.outlet.returned(m.message.CorrelationId)
	switch {
	case returned:
		m.outcome, m.again, m.absent = provider.OutcomeRefused, true, true
		m.err = &Error{Problem: fmt.Sprintf("there is no queue for it: %s to %s%s", why, m.exchange, m.key), Remedy: "declare it, or let Backstage do so"}
	case m.confirm.Acked():
		m.outcome, m.err = provider.OutcomeStored, nil
	case m.outlet.ch.IsClosed():
		<-m.outlet.gone
		m.outcome, m.err = provider.OutcomeUnknown, unconfirmed(m.outlet.why)
	default:
		m.outcome, m.again = provider.OutcomeRefused, true
		m.err = &Error{Problem: "the broker refused it (nack)", Remedy: "the queue is full by a policy, or has no majority of its replicas"}
	}
}

// unconfirmed is why it is not known what became of a job.
func unconfirmed(why error) error {
	return &Error{Problem: "the channel ended before the broker confirmed", Remedy: "the same id may be tried again", Err: why}
}

// deliver sends parcels, and returns when it is known of each what became of it, or
// ctx has ended.
func (p *publisher) deliver(ctx context.Context, parcels []*parcel) {
	waiting := 0 // the first that is sent and not known
	for i, m := range parcels {
		m.again, m.absent = false, false
		for {
			sent, err := p.begin(ctx, m, waiting == i)
			if err != nil {
				m.confirm, m.outcome, m.err = nil, provider.OutcomeRefused, err
			}
			if sent {
				break
			}
			// The window is full, and part of it is ours.
			for waiting < i && parcels[waiting].confirm == nil {
				waiting++
			}
			if waiting < i {
				p.end(ctx, parcels[waiting])
				waiting++
			}
		}
	}
	for _, m := range parcels[waiting:] {
		if m.confirm != nil {
			p.end(ctx, m)
		}
	}
}

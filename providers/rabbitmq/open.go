package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/backstage-go/backstage/providers/internal/gate"
	"github.com/backstage-go/backstage/runtime/provider"
)

// store is one opening of a prefix.
type store struct {
	cfg        Config
	in         internals
	names      names
	news       *news
	publisher  *publisher
	admin      *admin
	topology   *topology
	management *management // nil if there is none
	locks      locks
	provider   *provider.Provider

	calls   gate.Gate       // calls that the broker takes part in
	closing context.Context // ends when Close is called
	stop    context.CancelFunc

	mu     sync.Mutex
	subs   map[*subscription]bool
	tried  bool // a return was tried, and nothing was lost
	turns  int  // of URLs, so that all are tried
	severe bool // nothing is connected again: in tests, the process is dead
}

// Open opens a prefix of a RabbitMQ server or cluster, and returns it as a provider.
//
// It connects, and returns a *provider.SetupError for settings that cannot work. What
// else keeps it from connecting to any of the URLs is an *Error, at once.
//
// The provider must be closed. A process that dies without it leaves nothing to
// repair: its jobs go back to their queues when the broker has noticed.
func Open(ctx context.Context, cfg Config) (*provider.Provider, error) {
	s, err := open(ctx, cfg, internals{})
	if err != nil {
		return nil, err
	}
	return s.provider, nil
}

func open(ctx context.Context, cfg Config, in internals) (*store, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	s := &store{cfg: cfg, in: in, names: names{cfg.Prefix}, news: new(news), subs: make(map[*subscription]bool)}
	s.topology = &topology{store: s}
	if cfg.Management != "" {
		if s.management, err = newManagement(&cfg); err != nil {
			return nil, err
		}
	}
	s.closing, s.stop = context.WithCancel(context.Background())
	publishing, err := newLink(ctx, s.news, s.dialer("publishing", 0))
	if err != nil {
		s.stop()
		return nil, err
	}
	asking, err := newLink(ctx, s.news, s.dialer("administration", 0))
	if err != nil {
		publishing.close(ctx)
		s.stop()
		return nil, err
	}
	s.publisher, s.admin = newPublisher(publishing, s.news), &admin{link: asking}
	s.assemble()
	return s, nil
}

// assemble makes the provider.
func (s *store) assemble() {
	s.provider = &provider.Provider{
		Name:   name,
		Jobs:   s,
		Stats:  &stats{s},
		Dead:   &letters{s},
		Events: &s.news.events,
		Health: s.health,
		Close:  s.close,
	}
	if !s.cfg.NoLadder {
		s.provider.Delays = &delays{s}
	}
}

// dialer returns what makes a connection to some node, one after the other.
func (s *store) dialer(title string, beats heartbeat) func(ctx context.Context) (*connection, error) {
	return func(ctx context.Context) (*connection, error) {
		var errs []error
		for range s.cfg.urls() {
			at, dead := s.turn()
			if dead {
				return nil, errEnded
			}
			c, err := connect(ctx, &s.cfg, &s.in, at, fmt.Sprintf("backstage %s, %s", s.cfg.Prefix, title), beats.interval())
			if err == nil {
				return c, nil
			}
			errs = append(errs, err)
			if ctx.Err() != nil {
				break
			}
		}
		return nil, errors.Join(errs...)
	}
}

// turn is the URL to try next.
func (s *store) turn() (at string, dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	urls := s.cfg.urls()
	at = urls[s.turns%len(urls)]
	if len(urls) > 1 {
		s.turns++
	}
	return at, s.severe
}

// ownDelays reports whether the provider's delays are its own, perhaps with
// something around them, and not lent by another.
func (s *store) ownDelays() bool {
	d := s.provider.Delays
	return d != nil && !s.cfg.NoLadder && !d.Facts().Lent
}

// during runs a call that ends with the provider.
func (s *store) during(do func() error) error {
	if !s.calls.Enter() {
		return provider.ErrClosed
	}
	defer s.calls.Leave()
	return do()
}

func (s *store) whenClosed() error { return s.during(func() error { return nil }) }

// point is where a process may be killed, in this package's own tests.
func (s *store) point(name string) {
	if s.in.hook != nil {
		s.in.hook(name)
	}
}

func (s *store) subscriptions() []*subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*subscription, 0, len(s.subs))
	for sub := range s.subs {
		all = append(all, sub)
	}
	return all
}

// close ends the provider: provider.Provider.Close.
func (s *store) close(ctx context.Context) error {
	s.stop()
	var errs []error
	for _, sub := range s.subscriptions() {
		errs = append(errs, sub.Close(ctx))
	}
	errs = append(errs, s.calls.Close(ctx))
	s.publisher.link.close(ctx)
	s.admin.link.close(ctx)
	// What waits on these connections ends with them.
	s.publisher.late.Wait()
	s.admin.work.Wait()
	if s.management != nil {
		s.management.close()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/providers/internal/gate"
	"github.com/backstage-go/backstage/runtime/provider"
)

// store is one opening of a namespace.
type store struct {
	cfg      Config
	keys     *keyring
	replicas replicas
	silent   time.Duration
	link     *link
	news     *news
	scripts  scripts
	slots    slots
	signals  signals
	registry registry
	bounds   bounds
	provider *provider.Provider
	holds    alarms // promoters that wait for what is due

	calls   gate.Gate       // calls that write or wait for jobs
	closing context.Context // ends when Close is called
	stop    context.CancelFunc

	mu   sync.Mutex
	subs map[*subscription]bool
}

// Open opens a namespace of a Redis server or cluster, and returns it as a provider.
//
// It connects, and returns a *provider.SetupError for what cannot work: settings that
// contradict each other, a server older than 7.0. Whatever else keeps it from
// connecting before ctx ends is an *Error. What is weak about the server's settings
// (no append-only file, eviction) is an event of kind Degraded for the first who
// observes.
//
// The provider must be closed. A process that dies without it leaves nothing to
// repair: its deliveries start again elsewhere when their leases have ended.
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
	from, err := newSource(cfg)
	if err != nil {
		return nil, err
	}
	s := &store{
		cfg:      cfg,
		keys:     newKeyring(cfg.Namespace, cfg.Tags),
		replicas: replicas{cfg.WaitReplicas, cfg.WaitTimeout},
		news:     new(news),
		subs:     make(map[*subscription]bool),
	}
	if s.scripts, err = newScripts(); err != nil {
		return nil, err
	}
	s.silent = in.silent
	if s.silent == 0 {
		s.silent = silent
	}
	s.link = newLink(from, s.news, in.hook)
	s.closing, s.stop = context.WithCancel(context.Background())
	s.assemble()
	if err := errors.Join(s.inspect(ctx), s.setBounds(ctx)); err != nil {
		s.stop()
		return nil, errors.Join(err, s.link.close())
	}
	return s, nil
}

// assemble makes the provider.
func (s *store) assemble() {
	s.provider = &provider.Provider{
		Name:   name,
		Jobs:   s,
		Delays: &delays{store: s},
		Claims: &claims{store: s, apart: s.keys.tags == TagQueue},
		Stats:  &stats{s},
		Dead:   &letters{s},
		Events: &s.news.events,
		Lend:   s.lend,
		Health: s.health,
		Close:  s.close,
	}
}

// setBounds stores the bounds that this process was given.
func (s *store) setBounds(ctx context.Context) error {
	for queue, bound := range s.cfg.Bounds {
		key := s.keys.queue(scope{}, queue).bound
		err := s.link.to(ctx, key, func(server *redis.Client) error {
			if bound == 0 {
				return server.Del(ctx, key).Err()
			}
			return server.Set(ctx, key, bound, 0).Err()
		})
		if err != nil {
			return fmt.Errorf("bound of queue %q: %w", queue, err)
		}
	}
	return nil
}

// Facts describes the namespace: provider.Jobs.
func (s *store) Facts() provider.JobFacts {
	return provider.JobFacts{
		Death:         provider.LeaseOnRecord,
		Confirmed:     true,
		RefusesLate:   true,
		AtomicHandoff: s.keys.tags == TagNamespace,
		ExactCrashes:  true,
		Retries:       provider.RetriesNone,
		Ordered:       false,
		Durable:       true,
	}
}

// ownDelays reports whether the provider's delays are its own, perhaps with
// something around them, and not lent by another.
func (s *store) ownDelays() bool {
	d := s.provider.Delays
	return d != nil && !d.Facts().Lent
}

// ownClaims reports the same of its claims. With a slot for each queue they are not
// in the step that stores the job, and so are used as lent ones are.
func (s *store) ownClaims() bool {
	c := s.provider.Claims
	return c != nil && !c.Facts().Lent
}

// lend gives delays and claims to a borrower: provider.Provider.Lend.
func (s *store) lend(name string) (provider.Delays, provider.Claims) {
	to := scope{lent: true, name: name}
	return &delays{store: s, scope: to}, &claims{store: s, scope: to}
}

// during runs a call that ends with the provider.
func (s *store) during(do func() error) error {
	if !s.calls.Enter() {
		return provider.ErrClosed
	}
	defer s.calls.Leave()
	return do()
}

// untilClosed returns a context that also ends when the provider is closed.
func (s *store) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(s.closing, cancel)
	return within, func() { forget(); cancel() }
}

// close ends the provider: provider.Provider.Close.
func (s *store) close(ctx context.Context) error {
	s.stop()
	s.mu.Lock()
	var subs []*subscription
	for sub := range s.subs {
		subs = append(subs, sub)
	}
	s.mu.Unlock()
	var errs []error
	for _, sub := range subs {
		errs = append(errs, sub.Close(ctx))
	}
	errs = append(errs, s.calls.Close(ctx), s.slots.wait(ctx))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return s.link.close()
}

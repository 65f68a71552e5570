package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/providers/internal/gate"
	"github.com/backstage-go/backstage/runtime/provider"
)

// store is one opening of a prefix.
type store struct {
	cfg       Config
	in        internals
	names     names
	news      *news
	wires     *wires
	client    *kafkago.Client // of all requests but those of a member of the group
	topics    *topics
	publisher *publisher
	provider  *provider.Provider

	calls   gate.Gate       // calls that a broker takes part in
	closing context.Context // ends when Close is called
	stop    context.CancelFunc

	ending turns // of those who end dead letters of a queue
	census census

	mu   sync.Mutex
	subs map[*subscription]bool
}

// Open opens a prefix of a Kafka cluster, and returns it as a provider.
//
// It connects, and returns a *provider.SetupError for settings that cannot work. What
// else keeps it from connecting to any of the brokers is an *Error, when ctx or
// Config.Timeout ends.
//
// The provider must be closed. A process that dies without it leaves nothing to
// repair: its jobs go to others when its group has noticed.
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
	s.closing, s.stop = context.WithCancel(context.Background())
	s.wires = newWires(&s.cfg, &s.in, s.news)
	s.client = s.wires.client()
	s.topics = newTopics(s)
	s.publisher = newPublisher(s)
	s.census.letters = &letters{s}
	s.assemble()
	if err := s.meet(ctx); err != nil {
		_ = s.close(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

// meet waits for the first answer of a broker.
func (s *store) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if _, err := s.client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{}}); err != nil {
		return explained(errors.Join(err, s.news.reason()))
	}
	return nil
}

// assemble makes the provider.
func (s *store) assemble() {
	s.provider = &provider.Provider{
		Name:   name,
		Jobs:   s,
		Stats:  &stats{s},
		Dead:   s.census.letters,
		Events: &s.news.events,
		Health: s.health,
		Close:  s.close,
	}
}

// during runs a call that ends with the provider.
func (s *store) during(do func() error) error {
	if !s.calls.Enter() {
		return provider.ErrClosed
	}
	defer s.calls.Leave()
	return do()
}

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
	s.publisher.close()
	s.wires.close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

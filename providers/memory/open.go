package memory

import (
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Config says how to open a store. The zero value works.
type Config struct {
	// Store is the storage to open. Defaults to a new one.
	Store *Store
	// Name is the provider's name in messages, events and tables. Defaults to
	// "memory".
	Name string
	// Bounds are the most unsettled jobs that queues take from clients, by queue.
	// A bound is stored with its queue, so it holds for all who open the store,
	// until it is set anew; 0 removes it. Defaults to leaving all as they are: at
	// first there is none.
	Bounds map[string]int
	// MaxDead is the most dead letters that the store keeps. Then DeadLetter
	// returns provider.ErrDeadFull and settles nothing. It is stored, like a
	// bound; -1 removes it. Defaults to leaving it as it is: at first there is
	// none.
	MaxDead int
	// PromotionLease is how long a due job is reserved for one promoter that
	// publishes it elsewhere (see Provider.Lend). A promoter that died delays its
	// jobs by as much. Defaults to 15s.
	PromotionLease time.Duration
}

// check returns what is wrong with a configuration.
func (c *Config) check() error {
	for queue, bound := range c.Bounds {
		if queue == "" || bound < 0 {
			return c.wrong(fmt.Sprintf("the bound of queue %q is %d", queue, bound), "name a queue, and set a bound of 0 (none) or more")
		}
	}
	if c.MaxDead < -1 {
		return c.wrong(fmt.Sprintf("MaxDead is %d", c.MaxDead), "set it to 0 (as it is), -1 (none) or more")
	}
	if c.PromotionLease < 0 {
		return c.wrong(fmt.Sprintf("PromotionLease is %v", c.PromotionLease), "set it to 0 (the default) or more")
	}
	return nil
}

func (c *Config) wrong(problem, remedy string) error {
	return &provider.SetupError{Provider: c.Name, Problem: problem, Remedy: remedy}
}

// Open opens a store. What was opened twice on one store acts as two processes do.
// It fails with a *provider.SetupError for a configuration that makes no sense.
//
// Replace Delays and Claims of what it returns, if at all, before first use.
func Open(config Config) (*provider.Provider, error) {
	if config.Name == "" {
		config.Name = "memory"
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Store == nil {
		config.Store = NewStore()
	}
	if config.PromotionLease == 0 {
		config.PromotionLease = 15 * time.Second
	}
	config.Store.make()
	s := newSession(config)
	store := s.store
	store.mu.Lock()
	defer store.mu.Unlock()
	for name, bound := range config.Bounds {
		q := store.queue(name)
		q.bound = bound
		q.admit()
	}
	if config.MaxDead != 0 {
		store.dead.limit = max(0, config.MaxDead)
	}
	store.sessions[s.provider] = s
	return s.provider, nil
}

package memory

import (
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Store is a storage that several providers can open. What is in it ends with the
// process, or when nobody refers to it any more; there is nothing to close. The
// zero value is an empty one.
type Store struct {
	made     sync.Once
	mu       sync.Mutex // guards all that is in the store and its sessions
	queues   map[string]*queue
	own      *scope
	lent     map[string]*scope
	dead     deadStore
	sessions map[*provider.Provider]*session

	places uint64 // the last place given in any queue
	runs   uint64 // the number of the last run; never used again
}

// NewStore returns an empty store.
func NewStore() *Store { return new(Store) }

// make makes what is in the store, once. All that use one do it first.
func (s *Store) make() {
	s.made.Do(func() {
		s.queues = make(map[string]*queue)
		s.own = newScope()
		s.lent = make(map[string]*scope)
		s.sessions = make(map[*provider.Provider]*session)
	})
}

// Drop ends a provider that Open returned for this store, as if its process had
// been killed: no call of it has an effect from now on, its deliveries come back
// after their leases with one crash more, and what it was promoting after its
// reservation. It reports whether there was such a provider, open.
func (s *Store) Drop(p *provider.Provider) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped := s.sessions[p]
	if dropped == nil {
		return false
	}
	dropped.drop()
	return true
}

// Put stores bytes in a queue as a broker would: those of a record become a job
// like any other, and all others wait until a worker meets them and moves them to
// the dead letters. It is for tests of what happens to them. Neither bounds nor
// claims apply.
func (s *Store) Put(queue string, record []byte) {
	s.make()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	q := s.queue(queue)
	j, err := provider.Unmarshal(record)
	if err != nil {
		j.ID = "(no record)"
	}
	j.Queue = queue
	e := newEntry(&j, q)
	if err != nil {
		e.raw = append([]byte{}, record...)
	}
	q.unsettled++
	q.enter(e, now)
}

// advance brings the store up to date: what is due becomes ready, unless somebody
// promotes it by a publish of his own.
func (s *Store) advance(now time.Time) {
	s.own.expire(now)
	if s.own.publishing > 0 {
		return
	}
	for h := s.own.due(now); h != nil; h = s.own.due(now) {
		s.own.ripen(h)
	}
}

// borrowed returns the scope of a borrower, and makes it if need be.
func (s *Store) borrowed(name string) *scope {
	c := s.lent[name]
	if c == nil {
		c = newScope()
		s.lent[name] = c
	}
	return c
}

package redisstreams

import (
	"context"
	"sync"
	"time"
)

// registerEvery is how long a queue is taken for known. It bounds for how long one is
// missing from the list after somebody has emptied the server.
const registerEvery = 30 * time.Second

// registry remembers which queues this process has put on the list of queues. It
// grows with the number of queues alone.
type registry struct {
	mu    sync.Mutex
	known map[string]time.Time
}

// strange returns those of the queues that are to be put on the list.
func (r *registry) strange(queues []string, now time.Time) []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []any
	for _, q := range queues {
		if at, known := r.known[q]; !known || now.Sub(at) > registerEvery {
			list = append(list, q)
		}
	}
	return list
}

func (r *registry) learn(list []any, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = make(map[string]time.Time)
	}
	for _, q := range list {
		r.known[q.(string)] = now
	}
}

// forget makes all queues strange again, because the list may be gone.
func (r *registry) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.known)
}

// register puts queues on the list before anything is in them: a job in a queue that
// nobody can list would be invisible.
func (s *store) register(ctx context.Context, queues ...string) error {
	now := time.Now()
	list := s.registry.strange(queues, now)
	if len(list) == 0 {
		return nil
	}
	if _, err := s.link.run(ctx, &s.scripts.enlist, []string{s.keys.registry()}, list...); err != nil {
		return err
	}
	s.registry.learn(list, now)
	return nil
}

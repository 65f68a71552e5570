package kafka

import (
	"cmp"
	"context"
	"slices"

	"github.com/backstage-go/backstage/runtime/provider"
)

// letters are provider.DeadLetters: a topic beside each queue's jobs. A look through it
// reads all of it.
type letters struct{ store *store }

const usualLimit = 100

// List returns a page: provider.DeadLetters. It reads all letters of the queues that
// the filter selects, and those of the page once more.
func (l *letters) List(ctx context.Context, filter provider.DeadFilter, page string) (list []provider.DeadLetter, next string, err error) {
	after, err := parsePage(page)
	if err != nil {
		return nil, "", err
	}
	limit := filter.Limit
	if limit <= 0 {
		limit = usualLimit
	}
	err = l.store.during(func() error {
		queues, err := l.queues(ctx, filter.Queue)
		if err != nil {
			return err
		}
		var places []letterPlace
		for _, queue := range queues {
			found, err := l.find(ctx, queue, func(letter *provider.DeadLetter) bool { return filter.Match(letter) && after.passes(letter) })
			if err != nil {
				return err
			}
			places = append(places, found...)
		}
		slices.SortFunc(places, comparePlaces)
		if len(places) > limit {
			places = places[:limit]
			next = places[limit-1].page()
		}
		list, err = l.load(ctx, places)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return list, next, nil
}

// queues are those whose letters are asked for: one, or all that have some.
func (l *letters) queues(ctx context.Context, only string) ([]string, error) {
	if only != "" {
		return []string{only}, nil
	}
	return l.store.queues(ctx, partDead)
}

// bounds are the first offset of a queue's letters that is there, and the next that will
// be given; 0 where there is no topic.
func (l *letters) bounds(ctx context.Context, queue string) (from, to int64, err error) {
	topic := l.store.names.dead(queue)
	if there, err := l.store.topics.there(ctx, topic); err != nil || !there {
		return 0, 0, explained(err)
	}
	within, err := l.store.bounds(ctx, topic, 0)
	return within[0].FirstOffset, within[0].LastOffset, err
}

// each shows what is in the topic of a queue's letters, from its beginning to the end
// that it has at the time.
func (l *letters) each(ctx context.Context, queue string, look func(*received)) (end int64, err error) {
	from, to, err := l.bounds(ctx, queue)
	if err != nil {
		return 0, err
	}
	return to, l.store.scan(ctx, l.store.names.dead(queue), 0, from, to, func(r *received) bool {
		look(r)
		return true
	})
}

// find returns where the letters of a queue are that are there and match.
func (l *letters) find(ctx context.Context, queue string, match func(*provider.DeadLetter) bool) ([]letterPlace, error) {
	there := make(map[string]letterPlace)
	_, err := l.each(ctx, queue, func(r *received) {
		delete(there, string(r.key))
		if r.value == nil {
			return
		}
		if letter := readLetter(queue, r); match(&letter) {
			there[string(r.key)] = letterPlace{at: letter.At.UnixNano(), address: letter.Address, queue: queue, offset: r.offset}
		}
	})
	places := make([]letterPlace, 0, len(there))
	for _, s := range there {
		places = append(places, s)
	}
	return places, err
}

// load returns the letters at some places. One that is gone since is left out.
func (l *letters) load(ctx context.Context, places []letterPlace) ([]provider.DeadLetter, error) {
	found := make(map[letterPlace]provider.DeadLetter)
	byQueue := make(map[string][]letterPlace)
	for _, s := range places {
		byQueue[s.queue] = append(byQueue[s.queue], s)
	}
	for queue, of := range byQueue {
		slices.SortFunc(of, func(a, b letterPlace) int { return cmp.Compare(a.offset, b.offset) })
		err := l.store.scan(ctx, l.store.names.dead(queue), 0, of[0].offset, of[len(of)-1].offset+1, func(r *received) bool {
			for len(of) > 0 && of[0].offset < r.offset {
				of = of[1:]
			}
			if len(of) > 0 && of[0].offset == r.offset && r.value != nil {
				found[of[0]] = readLetter(queue, r)
			}
			return len(of) > 0
		})
		if err != nil {
			return nil, err
		}
	}
	list := make([]provider.DeadLetter, 0, len(places))
	for _, s := range places {
		if letter, ok := found[s]; ok {
			list = append(list, letter)
		}
	}
	return list, nil
}

// Get returns one letter: provider.DeadLetters. It reads all of its queue.
func (l *letters) Get(ctx context.Context, address string) (provider.DeadLetter, error) {
	var found *provider.DeadLetter
	err := l.store.during(func() error {
		id, queue, ok := parseAddress(address)
		if !ok {
			return nil
		}
		_, err := l.each(ctx, queue, func(r *received) {
			if string(r.key) != id {
				return
			}
			found = nil
			if r.value != nil {
				letter := readLetter(queue, r)
				found = &letter
			}
		})
		return err
	})
	if err == nil && found == nil {
		err = notFound(address)
	}
	if err != nil {
		return provider.DeadLetter{}, err
	}
	return *found, nil
}

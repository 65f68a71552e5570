package rabbitmq

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// letters are provider.DeadLetters: a queue beside each queue of jobs. A look through
// it takes all of it and gives it back, so it takes the longer the more there are;
// nothing of it is lost if it is cut off.
type letters struct{ store *store }

const usualLimit = 100

// List returns a page: provider.DeadLetters. It looks through all letters of the
// queues that the filter selects.
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
		queues := []string{filter.Queue}
		if filter.Queue == "" {
			if queues, err = l.store.queues(ctx); err != nil {
				return err
			}
		}
		newest := &shelf{most: limit + 1, seen: make(map[string]bool)}
		for _, queue := range queues {
			if err := l.each(ctx, queue, func(letter *provider.DeadLetter, _ amqp.Delivery) bool {
				if filter.Match(letter) && after.passes(letter) {
					newest.put(letter)
				}
				return true
			}); err != nil {
				return err
			}
		}
		list = newest.sorted()
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next = pageAfter(&list[limit-1])
	}
	return list, next, nil
}

// each shows the letters of a queue, oldest first, until look returns false.
func (l *letters) each(ctx context.Context, queue string, look func(*provider.DeadLetter, amqp.Delivery) bool) error {
	return l.store.scan(ctx, l.store.names.dead(queue), func(sc *scan) error {
		for {
			d, there, err := sc.next(ctx)
			if err != nil || !there {
				return err
			}
			letter := readLetter(queue, &d)
			if !look(&letter, d) {
				return nil
			}
		}
	})
}

// Get returns one letter: provider.DeadLetters.
func (l *letters) Get(ctx context.Context, address string) (provider.DeadLetter, error) {
	var found *provider.DeadLetter
	err := l.store.during(func() error {
		_, queue, ok := parseAddress(address)
		if !ok {
			return nil
		}
		return l.each(ctx, queue, func(letter *provider.DeadLetter, _ amqp.Delivery) bool {
			if letter.Address == address {
				found = letter
			}
			return found == nil
		})
	})
	if err == nil && found == nil {
		err = notFound(address)
	}
	if err != nil {
		return provider.DeadLetter{}, err
	}
	return *found, nil
}

// mark is where a page ended.
type mark struct {
	at      int64
	address string
	set     bool
}

// parsePage reads where a page ended.
func parsePage(page string) (mark, error) {
	if page == "" {
		return mark{}, nil
	}
	at, address, ok := strings.Cut(page, "/")
	n, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || address == "" {
		return mark{}, fmt.Errorf("there is no page %q of dead letters", page)
	}
	return mark{n, address, true}, nil
}

func pageAfter(l *provider.DeadLetter) string {
	return strconv.FormatInt(l.At.UnixNano(), 10) + "/" + l.Address
}

// passes reports whether a letter comes after the mark.
func (m mark) passes(l *provider.DeadLetter) bool {
	return !m.set || compareLetters(l.At.UnixNano(), l.Address, m.at, m.address) > 0
}

// compareLetters puts the newest first.
func compareLetters(at int64, address string, otherAt int64, otherAddress string) int {
	switch {
	case at > otherAt:
		return -1
	case at < otherAt:
		return 1
	}
	return strings.Compare(address, otherAddress)
}

// shelf keeps the newest letters, each once: a copy that was stored twice has one
// address.
type shelf struct {
	most int
	list []provider.DeadLetter
	seen map[string]bool
}

func (s *shelf) put(l *provider.DeadLetter) {
	if s.seen[l.Address] {
		return
	}
	s.seen[l.Address] = true
	if s.list = append(s.list, *l); len(s.list) >= 4*s.most {
		s.sort()
	}
}

func (s *shelf) sort() {
	slices.SortFunc(s.list, func(a, b provider.DeadLetter) int {
		return compareLetters(a.At.UnixNano(), a.Address, b.At.UnixNano(), b.Address)
	})
	if len(s.list) > s.most {
		clear(s.list[s.most:])
		s.list = s.list[:s.most]
	}
}

func (s *shelf) sorted() []provider.DeadLetter {
	s.sort()
	return s.list
}

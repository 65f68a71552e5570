package redisstreams

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// letters are provider.DeadLetters. Each queue has a sorted set of addresses, by the
// microsecond of death, and a hash of records. No two letters of a queue have one
// microsecond, so that it is the letter's name there.
type letters struct{ store *store }

// address finds a letter: "MICROSECOND@QUEUE".
type address struct {
	micro int64
	queue string
}

func (a address) String() string { return a.name() + "@" + a.queue }

// name is the letter's name within its queue.
func (a address) name() string { return strconv.FormatInt(a.micro, 10) }

func parseAddress(s string) (address, bool) {
	micro, queue, found := strings.Cut(s, "@")
	n, err := strconv.ParseInt(micro, 10, 64)
	if !found || err != nil || n <= 0 || queue == "" || strconv.FormatInt(n, 10) != micro {
		return address{}, false
	}
	return address{n, queue}, true
}

// newerThan orders letters as List does, newest first, and those of one moment by
// their queue.
func (a address) newerThan(b address) int {
	return cmp.Or(cmp.Compare(b.micro, a.micro), cmp.Compare(a.queue, b.queue))
}

func notFound(address string) error {
	return fmt.Errorf("dead letter %q: %w", address, provider.ErrNotFound)
}

// pageSize is how many letters a page has by default, and chunk how many are read at
// once.
const (
	pageSize = 100
	chunk    = 100
)

// List returns dead letters: provider.DeadLetters. With a filter by more than queue
// and time it reads all letters until enough match.
func (l *letters) List(ctx context.Context, filter provider.DeadFilter, page string) ([]provider.DeadLetter, string, error) {
	after := address{}
	if page != "" {
		var ok bool
		if after, ok = parseAddress(page); !ok {
			return nil, "", fmt.Errorf("list dead letters: no such page: %q", page)
		}
	}
	var found []provider.DeadLetter
	err := l.store.during(func() error {
		var err error
		found, err = l.find(ctx, filter, after)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	limit := limitOf(filter)
	if len(found) <= limit {
		return found, "", nil
	}
	return found[:limit], found[limit-1].Address, nil
}

func limitOf(filter provider.DeadFilter) int {
	if filter.Limit <= 0 {
		return pageSize
	}
	return filter.Limit
}

// find returns one more letter than a page has, if there are so many.
func (l *letters) find(ctx context.Context, filter provider.DeadFilter, after address) ([]provider.DeadLetter, error) {
	queues := []string{filter.Queue}
	if filter.Queue == "" {
		var err error
		if queues, err = l.store.queues(ctx); err != nil {
			return nil, err
		}
	}
	readers := make([]*letterReader, 0, len(queues))
	for _, queue := range queues {
		readers = append(readers, newLetterReader(l.store, queue, filter, after))
	}
	var found []provider.DeadLetter
	for len(found) <= limitOf(filter) {
		next, err := newest(ctx, readers)
		if err != nil || next == nil {
			return found, err
		}
		if letter := next.take(); filter.Match(&letter) {
			found = append(found, letter)
		}
	}
	return found, nil
}

// newest returns the reader whose next letter is the newest of all, or nil.
func newest(ctx context.Context, readers []*letterReader) (*letterReader, error) {
	var first *letterReader
	for _, r := range readers {
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
		if len(r.letters) > 0 && (first == nil || r.letters[0].at.newerThan(first.letters[0].at) < 0) {
			first = r
		}
	}
	return first, nil
}

// letterReader reads the letters of a queue, newest first, a few at once.
type letterReader struct {
	store    *store
	keys     letterKeys
	queue    string
	from, to string // by microseconds; a bracket leaves the end out
	letters  []readLetter
	ended    bool
}

type readLetter struct {
	at   address
	body string
}

func newLetterReader(s *store, queue string, filter provider.DeadFilter, after address) *letterReader {
	r := &letterReader{store: s, keys: s.keys.letters(queue), queue: queue, from: "+inf", to: "-inf"}
	if !filter.Until.IsZero() {
		r.from = strconv.FormatInt(filter.Until.UnixMicro(), 10)
	}
	if !filter.Since.IsZero() {
		r.to = strconv.FormatInt(filter.Since.UnixMicro(), 10)
	}
	if after.micro == 0 || !filter.Until.IsZero() && filter.Until.UnixMicro() < after.micro {
		return r
	}
	r.from = after.name()
	if cmp.Compare(after.queue, queue) >= 0 {
		r.from = "(" + r.from // those of that moment came before
	}
	return r
}

func (r *letterReader) take() provider.DeadLetter {
	first := r.letters[0]
	r.letters = r.letters[1:]
	return letterOf(first.at, first.body)
}

// fill reads the next letters when there are none left. A letter that was replayed or
// discarded meanwhile is passed over.
func (r *letterReader) fill(ctx context.Context) error {
	for len(r.letters) == 0 && !r.ended {
		var names []string
		var bodies []any
		err := r.store.link.to(ctx, r.keys.dead, func(server *redis.Client) error {
			var err error
			names, err = server.ZRangeArgs(ctx, redis.ZRangeArgs{
				Key: r.keys.dead, Start: r.from, Stop: r.to, ByScore: true, Rev: true, Count: chunk,
			}).Result()
			if err != nil || len(names) == 0 {
				return err
			}
			bodies, err = server.HMGet(ctx, r.keys.letters, names...).Result()
			return err
		})
		if err != nil {
			return err
		}
		r.ended = len(names) < chunk
		for i, name := range names {
			r.from = "(" + name
			micro, err := strconv.ParseInt(name, 10, 64)
			body, there := nth(bodies, i).(string)
			if err == nil && there {
				r.letters = append(r.letters, readLetter{address{micro, r.queue}, body})
			}
		}
	}
	return nil
}

// letterOf makes a letter of what is stored.
func letterOf(a address, body string) provider.DeadLetter {
	letter := provider.DeadLetter{Address: a.String(), Queue: a.queue, At: time.UnixMicro(a.micro)}
	job, err := provider.Unmarshal([]byte(body))
	if err != nil {
		letter.Raw = []byte(body)
		letter.Failure = provider.Failure{At: letter.At, Class: provider.ClassNoRecord, Message: "the bytes are not a job record"}
		return letter
	}
	letter.Job = job
	if len(job.History) > 0 {
		letter.Failure = job.History[len(job.History)-1]
	}
	return letter
}

// Get returns one dead letter: provider.DeadLetters.
func (l *letters) Get(ctx context.Context, where string) (provider.DeadLetter, error) {
	var letter provider.DeadLetter
	err := l.store.during(func() error {
		a, ok := parseAddress(where)
		if !ok {
			return notFound(where)
		}
		body, err := l.read(ctx, a)
		if err == nil {
			letter = letterOf(a, body)
		}
		return err
	})
	return letter, err
}

// read returns what is stored at an address.
func (l *letters) read(ctx context.Context, a address) (string, error) {
	s := l.store
	key := s.keys.letters(a.queue).letters
	body := ""
	err := s.link.to(ctx, key, func(server *redis.Client) error {
		var err error
		body, err = server.HGet(ctx, key, a.name()).Result()
		return err
	})
	if err == redis.Nil {
		err = notFound(a.String())
	}
	return body, err
}

// byQueue groups addresses, each with its place in the call. Those that are none are
// left out.
func byQueue(addresses []string) (queues []string, parts map[string][]int) {
	parts = make(map[string][]int)
	for i, where := range addresses {
		a, ok := parseAddress(where)
		if !ok {
			continue
		}
		if len(parts[a.queue]) == 0 {
			queues = append(queues, a.queue)
		}
		parts[a.queue] = append(parts[a.queue], i)
	}
	slices.Sort(queues)
	return queues, parts
}

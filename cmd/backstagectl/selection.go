package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/runtime/provider"
)

// A selection says which dead letters are meant: by name, or all that pass its
// filters, or those of the named that do.
type selection struct {
	set            *flag.FlagSet
	filter         provider.DeadFilter
	reason, worker string
	older, newer   moment
	ids            string
}

// selectionFlags declares the flags by which dead letters are chosen.
func selectionFlags(set *flag.FlagSet) *selection {
	s := &selection{set: set}
	set.StringVar(&s.filter.Queue, "queue", "", "only those of this `queue`")
	set.StringVar(&s.filter.Task, "task", "", "only those of this task, by its `name` on the wire")
	set.StringVar(&s.filter.Class, "class", "", "only those of this `class` of failure: permanent, exhausted, crashed, …")
	set.StringVar(&s.filter.JobID, "job", "", "only those of the job with this `id`")
	set.StringVar(&s.reason, "reason", "", "only those whose failure's message has this `text` in it")
	set.StringVar(&s.worker, "worker", "", "only those whose last worker's name has this `text` in it")
	set.Var(&s.older, "older-than", "only those that died before this `time`: 2h or 7d ago, or 2025-10-31T12:00:00Z")
	set.Var(&s.newer, "newer-than", "only those that died since this `time`")
	set.StringVar(&s.ids, "ids", "", "only those named in this `file`, one a line; - for standard input")
	return s
}

// words returns what was chosen, for comparing.
func (s *selection) words(operands []string) []string {
	words := []string{}
	s.set.Visit(func(f *flag.Flag) {
		if slices.Contains([]string{"queue", "task", "class", "job", "reason", "worker", "older-than", "newer-than", "ids", "all"}, f.Name) {
			words = append(words, "-"+f.Name+"="+f.Value.String())
		}
	})
	return append(words, operands...)
}

// passes reports whether a letter passes all filters.
func (s *selection) passes(l *provider.DeadLetter) bool {
	return s.filter.Match(l) && strings.Contains(l.Failure.Message, s.reason) && strings.Contains(l.Failure.Worker, s.worker)
}

// search looks for the letters of one selection.
type search struct {
	*selection
	broker *broker
	dead   provider.DeadLetters
	wanted []wanted
	// missing are the wanted ones of which there is no letter (that passes).
	missing []wanted
}

// search prepares to look for what operands, the file of ids and the flags say.
func (s *selection) search(c *command.Console, b *broker, dead provider.DeadLetters, operands []string) (*search, error) {
	look := &search{selection: s, broker: b, dead: dead}
	now := b.now()
	s.filter.Until, s.filter.Since = s.older.before(now), s.newer.before(now)
	for _, operand := range operands {
		if why := noID(operand); why != "" {
			return nil, command.Usagef("%s", why)
		}
		look.wanted = append(look.wanted, wantedOf(operand, ""))
	}
	if s.ids != "" {
		ids, err := readIDs(s.ids, c.In)
		if err != nil {
			return nil, err
		}
		look.wanted = append(look.wanted, ids...)
	}
	look.wanted = once(look.wanted)
	return look, nil
}

// once leaves out what was asked for before.
func once(ids []wanted) []wanted {
	type id struct {
		text string
		kind wantedKind
	}
	seen := make(map[id]bool, len(ids))
	return slices.DeleteFunc(ids, func(w wanted) bool {
		key := id{w.text, w.kind}
		again := seen[key]
		seen[key] = true
		return again
	})
}

// byName reports whether letters were asked for by name: perhaps by an empty file.
func (s *search) byName() bool { return len(s.wanted) > 0 || s.ids != "" }

// errEnough ends a search.
var errEnough = errors.New("enough")

// each calls f for every letter: newest first where it is filters alone that choose,
// in the order in which they were named otherwise.
func (s *search) each(ctx context.Context, f func(*provider.DeadLetter) error) error {
	err := s.eachOf(ctx, f)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (s *search) eachOf(ctx context.Context, f func(*provider.DeadLetter) error) error {
	if !s.byName() {
		return s.list(ctx, s.filter, func(l *provider.DeadLetter) error {
			if !s.passes(l) {
				return nil
			}
			return f(l)
		})
	}
	addresses, err := s.addresses(ctx)
	if err != nil {
		return err
	}
	for _, address := range addresses {
		letter, err := s.get(ctx, address)
		if errors.Is(err, provider.ErrNotFound) {
			continue // it was there a moment ago
		}
		if err != nil {
			return err
		}
		if err := f(&letter); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) get(ctx context.Context, address string) (provider.DeadLetter, error) {
	return within(ctx, s.broker, func(ctx context.Context) (provider.DeadLetter, error) { return s.dead.Get(ctx, address) })
}

// list calls f for every letter that passes the provider's filter, page by page.
func (s *search) list(ctx context.Context, filter provider.DeadFilter, f func(*provider.DeadLetter) error) error {
	type page struct {
		letters []provider.DeadLetter
		next    string
	}
	for at := ""; ; {
		p, err := within(ctx, s.broker, func(ctx context.Context) (p page, err error) {
			p.letters, p.next, err = s.dead.List(ctx, filter, at)
			return p, err
		})
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		for i := range p.letters {
			if err := f(&p.letters[i]); err != nil {
				return err
			}
		}
		if at = p.next; at == "" {
			return nil
		}
	}
}

// addresses returns the addresses of all wanted letters that pass, each once, and
// keeps those that are missing. An id that means two things is refused.
func (s *search) addresses(ctx context.Context) ([]string, error) {
	ofJobs, err := s.ofJobs(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	var wrong []error
	seen := map[string]bool{}
	for _, w := range s.wanted {
		found, err := s.addressesOf(ctx, w, ofJobs[w.text])
		if err != nil {
			return nil, err
		}
		if found.twoThings {
			wrong = append(wrong, fmt.Errorf("%s is the address of one dead letter and the job of another; write address:%s or job:%s", w, w.text, w.text))
		}
		if len(found.addresses) == 0 {
			s.missing = append(s.missing, w)
		}
		for _, address := range found.addresses {
			if !seen[address] {
				all = append(all, address)
			}
			seen[address] = true
		}
	}
	return all, errors.Join(wrong...)
}

// found is what an id led to.
type found struct {
	addresses []string
	twoThings bool
}

func (s *search) addressesOf(ctx context.Context, w wanted, ofJob []string) (found, error) {
	if w.kind == byJob {
		return found{addresses: ofJob}, nil
	}
	letter, err := s.get(ctx, w.text)
	switch {
	case errors.Is(err, provider.ErrNotFound) && w.kind == byEither:
		return found{addresses: ofJob}, nil
	case errors.Is(err, provider.ErrNotFound):
		return found{}, nil
	case err != nil:
		return found{}, fmt.Errorf("%s: %w", w, err)
	}
	others := slices.DeleteFunc(slices.Clone(ofJob), func(address string) bool { return address == letter.Address })
	f := found{twoThings: w.kind == byEither && len(others) > 0}
	if s.passes(&letter) {
		f.addresses = []string{letter.Address}
	}
	return f, nil
}

// fewJobs is how many jobs are asked for one by one. More are looked for in all
// letters at once.
const fewJobs = 20

// ofJobs returns the addresses of letters that pass, by those ids that may be a
// job's.
func (s *search) ofJobs(ctx context.Context) (map[string][]string, error) {
	jobs := map[string]bool{}
	for _, w := range s.wanted {
		if w.kind != byAddress {
			jobs[w.text] = true
		}
	}
	if s.filter.JobID != "" {
		jobs = map[string]bool{s.filter.JobID: jobs[s.filter.JobID]}
	}
	filters := []provider.DeadFilter{s.filter}
	if len(jobs) <= fewJobs {
		filters = nil
		for job := range jobs {
			filter := s.filter
			filter.JobID = job
			filters = append(filters, filter)
		}
	}
	addresses := map[string][]string{}
	for _, filter := range filters {
		err := s.list(ctx, filter, func(l *provider.DeadLetter) error {
			if jobs[l.Job.ID] && s.passes(l) {
				addresses[l.Job.ID] = append(addresses[l.Job.ID], l.Address)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

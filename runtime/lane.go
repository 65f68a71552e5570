package backstage

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/runtime/provider"
)

// laneSet is the queues that a worker serves, with their shares.
type laneSet struct {
	lanes  []provider.Lane
	weight []int
	strict bool
	fixed  bool // each lane has slots of its own
}

// laneSet returns the worker's lanes: the configured queues, or those of its tasks.
func (w *Worker) laneSet() (laneSet, error) {
	queues := w.cfg.Queues
	if len(queues) == 0 {
		for _, r := range w.tasks {
			for _, name := range r.waitsIn() {
				queues = append(queues, Queue{Name: name, Weight: 1})
			}
		}
		slices.SortFunc(queues, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
		queues = slices.Compact(queues)
	}
	set := laneSet{strict: w.cfg.StrictPriority, fixed: w.broker.Jobs.Facts().FixedSlots}
	for _, q := range queues {
		set.lanes = append(set.lanes, provider.Lane{Queue: q.Name})
		set.weight = append(set.weight, q.Weight)
	}
	if err := set.fits(w.broker.Name, w.cfg.Concurrency); err != nil {
		return laneSet{}, err
	}
	set.share(w.cfg.Concurrency)
	return set, nil
}

// fits refuses what fixed slots cannot do.
func (s laneSet) fits(name string, slots int) error {
	switch {
	case !s.fixed:
		return nil
	case s.strict:
		return &provider.SetupError{Provider: name, Problem: "its lanes have fixed slots, so strict priority cannot be kept",
			Remedy: "use weights"}
	case len(s.lanes) > slots:
		return &provider.SetupError{Provider: name, Problem: fmt.Sprintf("%d queues need a slot each, and there are %d", len(s.lanes), slots),
			Remedy: "raise Concurrency or serve fewer queues"}
	}
	return nil
}

// share divides the slots by weight, at least one to each lane.
func (s laneSet) share(slots int) {
	total := 0
	for _, weight := range s.weight {
		total += weight
	}
	left := slots
	for i := range s.lanes {
		s.lanes[i].Slots = max(1, slots*s.weight[i]/total)
		left -= s.lanes[i].Slots
	}
	for i := 0; left > 0; i = (i + 1) % len(s.lanes) {
		s.lanes[i].Slots++
		left--
	}
	for i := range s.lanes { // many small lanes took more than there is
		for left < 0 && s.lanes[i].Slots > 1 {
			s.lanes[i].Slots--
			left++
		}
	}
}

func (s laneSet) all() []provider.Lane { return slices.Clone(s.lanes) }

func (s laneSet) names() []string {
	names := make([]string, len(s.lanes))
	for i, lane := range s.lanes {
		names[i] = lane.Queue
	}
	return names
}

// order returns the lanes in the order in which one call is to take from them:
// as configured, or drawn by weight.
func (s laneSet) order() []string {
	names := s.names()
	if s.strict || len(names) == 1 {
		return names
	}
	// The least of exponential draws at rate w is lane i with probability w/sum.
	draw := make(map[string]float64, len(names))
	for i, name := range names {
		draw[name] = rand.ExpFloat64() / float64(s.weight[i])
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(draw[a], draw[b]) })
	return names
}

package batch

import (
	"slices"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Action is what is done to letters.
type Action string

// The actions.
const (
	Replay  Action = "replay"
	Discard Action = "discard"
)

// Done is the outcome of a letter to which the action was done.
func (a Action) Done() Outcome {
	if a == Discard {
		return Discarded
	}
	return Replayed
}

// Letter is one dead letter of a plan: where it is, and what tells it from another
// that may be there later.
type Letter struct {
	Address string    `json:"address"`
	Job     string    `json:"job"`
	Queue   string    `json:"queue"`
	Task    string    `json:"task"`
	Class   string    `json:"class"`
	DiedAt  time.Time `json:"died_at"`
	Replays int32     `json:"replays"`
}

// LetterOf returns what a plan keeps of a dead letter.
func LetterOf(l *provider.DeadLetter) Letter {
	return Letter{
		Address: l.Address,
		Job:     l.Job.ID,
		Queue:   l.Queue,
		Task:    l.Job.Task,
		Class:   l.Failure.Class,
		DiedAt:  l.At.UTC().Round(0),
		Replays: l.Job.Counters.Replays,
	}
}

// is reports whether a dead letter is the one that was planned.
func (l Letter) is(found *provider.DeadLetter) bool {
	now := LetterOf(found)
	return l.Address == now.Address && l.Job == now.Job && l.DiedAt.Equal(now.DiedAt) && l.Replays == now.Replays
}

// Plan is a fixed set of dead letters and what is to be done to them.
type Plan struct {
	Action Action `json:"action"`
	// URL is where the letters are.
	URL string `json:"url"`
	// Selection is how they were chosen, in words that can be compared.
	Selection []string `json:"selection"`
	// MadeAt is when.
	MadeAt time.Time `json:"made_at"`
	// Missing are ids that were asked for and of which there was no letter.
	Missing []string `json:"missing"`
	// Older is how many letters were left out because a newer one of the same job
	// is in the plan.
	Older int `json:"older"`
	// Unclaimed is how many letters have a dedupe key whose claim the broker does not
	// keep.
	Unclaimed int `json:"unclaimed"`
	// Letters are the set.
	Letters []Letter `json:"-"`
}

// Add takes letters into the plan, in the order in which they died: that is the order
// in which their jobs were, and return to their queues. A job is replayed by its newest
// letter alone: to replay two would run it twice.
func (p *Plan) Add(letters []Letter) {
	letters = slices.Clone(letters)
	slices.SortStableFunc(letters, func(a, b Letter) int { return b.DiedAt.Compare(a.DiedAt) })
	seen := make(map[string]bool, len(letters))
	addresses := make(map[string]bool, len(letters))
	for _, l := range letters {
		switch {
		case addresses[l.Address]:
			continue // asked for twice
		case p.Action == Replay && l.Job != "" && seen[l.Job]:
			p.Older++
		default:
			p.Letters = append(p.Letters, l)
		}
		addresses[l.Address], seen[l.Job] = true, true
	}
	slices.Reverse(p.Letters)
}

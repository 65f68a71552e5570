package redisstreams

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

var (
	errNoDelays  = errors.New("the job has a delay, and the provider's own delays are replaced")
	errUnordered = errors.New("the job has an ordering key, and redisstreams keeps no order: remove it, or use a provider that does")
)

// entry is a job on its way into Redis: its record, and of the job no more than the
// scripts need, because a provider.Job is several times as large.
type entry struct {
	scope  scope
	queue  string
	id     string
	body   []byte
	dedupe provider.Dedupe // of the claim that is taken with it
	delay  time.Duration
	held   bool   // even without a delay
	stamp  string // which copy of the job it is, if it is held
	order  string // the ordering key, in a borrower's scope

	bounded bool // a full queue refuses it
	at      int  // its place in the call

	call   *call
	stored provider.Stored
	waits  error // why it is not stored yet
	waited error // why it was not the last time
}

// newEntry makes a job's record. It runs in the caller's goroutine, so that the
// flush only sends.
func newEntry(j *provider.Job, s scope, ownDelays bool) (*entry, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	if j.Delay > 0 && !ownDelays {
		return nil, errNoDelays
	}
	if j.OrderingKey != "" && !s.lent {
		return nil, errUnordered
	}
	body, err := provider.Marshal(j)
	if err != nil {
		return nil, err
	}
	e := &entry{scope: s, queue: j.Queue, id: j.ID, body: body, delay: j.Delay, order: j.OrderingKey}
	if j.Delay > 0 {
		e.held = true
	}
	if e.held || s.lent {
		e.stamp = stampOf(j)
	}
	return e, nil
}

// stampOf is the state of a job that tells held copies of one id apart: its counters and
// a hash of its task.
func stampOf(j *provider.Job) string {
	c := j.Counters.Stamp()
	b := make([]byte, 0, 32)
	for _, n := range []int32{c.Failures, c.Snoozes, c.Parks, c.Starts, c.Replays} {
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, '.')
	}
	task := fnv.New64a()
	task.Write([]byte(j.Task))
	return string(strconv.AppendUint(b, task.Sum64(), 36))
}

// MarshalBinary returns the record. As an argument of a script an entry needs no
// allocation, and its bytes would.
func (e *entry) MarshalBinary() ([]byte, error) { return e.body, nil }

// simple reports whether it goes to its queue and to nothing else.
func (e *entry) simple() bool { return !e.held && e.dedupe.Key == "" }

func (e *entry) shelf() shelf { return shelf{e.queue, e.bounded} }

// weight is the bytes that it adds to a script.
func (e *entry) weight() int { return len(e.body) + len(e.id) + len(e.dedupe.Key) }

// answer says what became of it, or why it has to be tried again.
func (e *entry) answer(stored provider.Stored, waits error) {
	if e.call.open() {
		stored.ID = e.id
		e.stored, e.waits = stored, waits
		e.call.answered()
	}
}

// refuse says that it is not stored.
func (e *entry) refuse(why error) {
	e.answer(provider.Stored{Outcome: provider.OutcomeRefused, Err: why}, nil)
}

// leave says that it is not stored because its caller does not wait any longer, and
// what for.
func (e *entry) leave(why error) {
	if e.waited != nil {
		why = fmt.Errorf("%w: %w", e.waited, why)
	}
	e.refuse(why)
}

// microseconds writes a time for a script.
func microseconds(d time.Duration) string {
	return strconv.FormatInt(int64(d/time.Microsecond)+rest(d%time.Microsecond), 10)
}

// milliseconds writes a time for Redis, which forgets keys after it: never early.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64(d/time.Millisecond)+rest(d%time.Millisecond)), 10)
}

func rest(d time.Duration) int64 {
	if d > 0 {
		return 1
	}
	return 0
}

// claimTime is for how long a job's claim holds: 0 as long as the job lives.
func claimTime(d provider.Dedupe) string {
	if d.UntilDone {
		return "0"
	}
	return milliseconds(min(d.For, longestClaim))
}

// longestClaim is far away and yet a time that Redis can add to its clock.
const longestClaim = time.Duration(math.MaxInt64)

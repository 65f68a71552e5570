package embedded

import (
	"errors"
	"hash/fnv"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

var errNoDelays = errors.New("the job has a delay, and the provider's own delays are replaced")

// entry is a job on its way into the file: its record, and of the job no more than
// the file needs to know, because a provider.Job is several times as large.
type entry struct {
	id     string
	queue  string
	delay  time.Duration
	dedupe provider.Dedupe
	key    int64
	body   []byte
	at     int // its place in the call
	// filled in by a transaction:
	q, n int64
}

// setNew is set for a job that is published here, where it cannot be held if the
// delays are another's.
func (e *entry) setNew(s *store, job *provider.Job) error {
	if job.Delay > 0 && !s.ownDelays() {
		return errNoDelays
	}
	return e.set(job)
}

// set makes a job's record. It runs in the caller's goroutine, so that the writer
// only writes.
func (e *entry) set(job *provider.Job) error {
	if err := job.Check(); err != nil {
		return err
	}
	body, err := provider.Marshal(job)
	if err != nil {
		return err
	}
	*e = entry{id: job.ID, queue: job.Queue, delay: job.Delay, dedupe: job.Dedupe, key: hashKey(job.OrderingKey), body: body}
	return nil
}

// hashKey makes an ordering key a number, never 0. Two keys with one number wait
// for each other, which costs them time and nothing else.
func hashKey(key string) int64 {
	if key == "" {
		return 0
	}
	n := hash(key)
	if n == 0 {
		return 1
	}
	return n
}

func hash(s string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return int64(h.Sum64())
}

// after returns when something is due that waits from now.
func (t *transaction) after(d time.Duration) int64 {
	if due := t.now + int64(d); due >= t.now {
		return due
	}
	return forever
}

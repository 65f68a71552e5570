package memory

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/backstage-go/backstage/runtime/provider"
)

// entry is a job that is not settled, through all of its runs. The job in it is
// replaced and never modified, because those who ran it before may still look.
type entry struct {
	job   *provider.Job
	raw   []byte    // bytes that are no record, in place of a job; nil otherwise
	queue *queue    // nil: held for another provider
	line  *line     // where it keeps its place, if it has an ordering key; nil until it is due
	next  *entry    // behind it in the line
	place uint64    // in the queue: a lower one starts first
	since time.Time // when it became ready
	run   uint64    // the run that it is in; 0: none
	slot  int       // in queue.early
}

// newEntry makes an entry of a job as Marshal and Unmarshal would bring it back.
func newEntry(j *provider.Job, q *queue) *entry {
	both := &struct {
		entry
		job provider.Job
	}{job: *j}
	both.job.Format = max(j.Format, provider.Format)
	both.job.Delay = 0
	both.job.Enqueued = j.Enqueued.Round(0)
	both.job.FirstDue = j.FirstDue.Round(0)
	both.entry.job, both.entry.queue = &both.job, q
	return &both.entry
}

var errText = errors.New("text is not valid UTF-8")

// check refuses what could not be a record.
func check(j *provider.Job) error {
	if err := j.Check(); err != nil {
		return err
	}
	for _, text := range [...]string{
		j.ID, j.Task, j.Queue, j.OrderingKey, j.Dedupe.Key, j.Root, j.Parent, j.Edge,
		j.Correlation, j.Trace, j.Actor, j.Tenant, j.Codec, j.KeyID,
	} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("job %q: %w: %q", j.ID, errText, text)
		}
	}
	for name, value := range j.Headers {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("job %q: header %q: %w", j.ID, name, errText)
		}
	}
	return nil
}

package kafka

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// The headers of a dead letter. Its key is what tells it from others of its queue, its
// value the job's record or the bytes that were none. A record without a value says
// that the letter with its key is gone.
const (
	headerDied = "backstage-died" // when, in nanoseconds since 1970, by the worker's clock
	headerRaw  = "backstage-raw"  // why it was no record
)

// putLetter stores a dead letter: a job, or bytes that are none. An id that is stored
// twice is one letter, so that a call whose outcome is not known can be made again with
// the same one.
func (s *store) putLetter(ctx context.Context, id, queue string, job *provider.Job, raw []byte, f provider.Failure) (provider.Outcome, error) {
	p, err := letterParcel(id, job, raw, f)
	if err != nil {
		return provider.OutcomeRefused, err
	}
	s.publisher.send(ctx, s.deadOf(queue), []*parcel{p})
	return p.outcome, p.err
}

func letterParcel(id string, job *provider.Job, raw []byte, f provider.Failure) (*parcel, error) {
	died := strconv.FormatInt(time.Now().UnixNano(), 10)
	p := &parcel{key: []byte(id), value: raw, headers: []kafkago.Header{{Key: headerDied, Value: []byte(died)}}}
	if job == nil {
		if p.value == nil {
			p.value = []byte{} // or it would say that the letter is gone
		}
		p.headers = append(p.headers, kafkago.Header{Key: headerRaw, Value: []byte(f.Message)})
		return p, nil
	}
	var err error
	p.value, err = provider.Marshal(job)
	return p, err
}

// goneParcel says that a letter is gone.
func goneParcel(id string) *parcel { return &parcel{key: []byte(id)} }

// An address is the letter's id and its queue.
func addressOf(id, queue string) string { return id + "@" + queue }

func parseAddress(address string) (id, queue string, ok bool) {
	id, queue, ok = strings.Cut(address, "@")
	return id, queue, ok && id != "" && queue != ""
}

// readLetter makes a dead letter of a record that has a value.
func readLetter(queue string, r *received) provider.DeadLetter {
	l := provider.DeadLetter{Address: addressOf(string(r.key), queue), Queue: queue, At: diedAt(r)}
	why, raw := r.header(headerRaw)
	job, err := provider.Unmarshal(r.value)
	switch {
	case raw:
		l.Failure = provider.Failure{At: l.At, Class: provider.ClassNoRecord, Message: string(why)}
	case err != nil:
		l.Failure = provider.Failure{At: l.At, Class: provider.ClassNoRecord, Message: err.Error()}
	default:
		l.Job = job
		if n := len(job.History); n > 0 {
			l.Failure = job.History[n-1]
		}
		return l
	}
	l.Raw = r.value
	return l
}

// diedAt is when a letter died; when it was stored, if it does not say.
func diedAt(r *received) time.Time {
	died, _ := r.header(headerDied)
	if n, err := strconv.ParseInt(string(died), 10, 64); err == nil {
		return time.Unix(0, n)
	}
	return time.UnixMilli(r.at)
}

// notFound says which letter is not there.
func notFound(address string) error {
	return fmt.Errorf("dead letter %q: %w", address, provider.ErrNotFound)
}

package provider

import (
	"errors"
	"fmt"
	"time"

	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// Format is the format of records that this version writes, and the highest that
// it reads.
const Format = 1

// ErrNoRecord is returned by Unmarshal for bytes that are not a job.
var ErrNoRecord = errors.New("not a job record")

// Marshal returns the job as the bytes that every broker stores. It fails only
// for text that is not valid UTF-8.
//
// Records are written and read without the generated message, which would be made
// and thrown away twice for each job: that was a tenth of a short job's memory,
// both times.
func Marshal(j *Job) ([]byte, error) {
	e := encoder{b: make([]byte, 0, sizeHint(j))}
	e.number(fieldFormat, int64(max(j.Format, Format)))
	for n := protowire.Number(fieldFormat + 1); n <= fieldLast; n++ {
		if err := e.field(n, j.field(n)); err != nil {
			return nil, fmt.Errorf("job %q: %w", j.ID, err)
		}
	}
	return append(e.b, j.rest...), nil
}

// Unmarshal reads the bytes of a record. It returns ErrNoRecord, wrapped with
// what is wrong, for bytes that are not one. Fields of a newer version are kept
// and written again by Marshal.
func Unmarshal(b []byte) (Job, error) {
	var j Job
	for len(b) > 0 {
		n, size, value, err := decodeField(b)
		if err == nil {
			var known bool
			if known, err = value.into(j.field(n)); !known {
				j.rest = append(j.rest, b[:size]...)
			}
		}
		if err != nil {
			return Job{}, fmt.Errorf("%w: %w", ErrNoRecord, err)
		}
		b = b[size:]
	}
	if j.Format == 0 {
		return Job{}, fmt.Errorf("%w: it has no format", ErrNoRecord)
	}
	if err := j.Check(); err != nil {
		return Job{}, fmt.Errorf("%w: %w", ErrNoRecord, err)
	}
	return j, nil
}

// The numbers of a record's fields are those of backstage.v1.Record.
const (
	fieldFormat = 1
	fieldLast   = 46
)

// field returns where a field of the record is kept in the job, nil if nowhere.
func (j *Job) field(n protowire.Number) any {
	switch n {
	case fieldFormat:
		return &j.Format
	case 2:
		return &j.Requires
	case 6:
		return &j.Payload
	case 7:
		return &j.Enqueued
	case 8:
		return &j.FirstDue
	case 9:
		return &j.Expires
	case 12:
		return &j.Dedupe.For
	case 13:
		return &j.Dedupe.UntilDone
	case 14:
		return &j.Overrides.Timeout
	case 15:
		return &j.Overrides.MaxAttempts
	case 16:
		return &j.Overrides.MaxAge
	case 17:
		return &j.Overrides.BackoffBase
	case 18:
		return &j.Overrides.BackoffCap
	case 20:
		return &j.Counters.Failures
	case 21:
		return &j.Counters.Crashes
	case 22:
		return &j.Counters.Snoozes
	case 23:
		return &j.Counters.Parks
	case 24:
		return &j.Counters.Starts
	case 25:
		return &j.Counters.StartCrashes
	case 26:
		return &j.History
	case 27:
		return &j.Replays
	case 28:
		return &j.Counters.Replays
	case 33:
		return &j.Ordinal
	case 40:
		return &j.Headers
	}
	if text := j.text(n); text != nil {
		return text
	}
	return nil
}

// text is field for texts.
func (j *Job) text(n protowire.Number) *string {
	switch n {
	case 3:
		return &j.ID
	case 4:
		return &j.Task
	case 5:
		return &j.Queue
	case 10:
		return &j.OrderingKey
	case 11:
		return &j.Dedupe.Key
	case 30:
		return &j.Root
	case 31:
		return &j.Parent
	case 32:
		return &j.Edge
	case 41:
		return &j.Correlation
	case 42:
		return &j.Trace
	case 43:
		return &j.Actor
	case 44:
		return &j.Tenant
	case 45:
		return &j.Codec
	case 46:
		return &j.KeyID
	}
	return nil
}

func (f *Failure) record() *backstagev1.Failure {
	r := &backstagev1.Failure{
		At:      nanos(f.At),
		Class:   f.Class,
		Message: f.Message,
		Worker:  f.Worker,
		Attempt: f.Attempt,
		Detail:  f.Detail,
	}
	if len(f.rest) > 0 {
		r.ProtoReflect().SetUnknown(f.rest)
	}
	return r
}

func failureOf(r *backstagev1.Failure) Failure {
	return Failure{
		At:      instant(r.At),
		Class:   r.Class,
		Message: r.Message,
		Worker:  r.Worker,
		Attempt: r.Attempt,
		Detail:  r.Detail,
		rest:    r.ProtoReflect().GetUnknown(),
	}
}

func (p *Replay) record() *backstagev1.Replay {
	r := &backstagev1.Replay{At: nanos(p.At), Failures: p.Failures, Crashes: p.Crashes}
	if len(p.rest) > 0 {
		r.ProtoReflect().SetUnknown(p.rest)
	}
	return r
}

func replayOf(r *backstagev1.Replay) Replay {
	return Replay{At: instant(r.At), Failures: r.Failures, Crashes: r.Crashes, rest: r.ProtoReflect().GetUnknown()}
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

package provider

import (
	"errors"
	"fmt"
	"time"

	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
	"google.golang.org/protobuf/proto"
)

// Format is the format of records that this version writes, and the highest that
// it reads.
const Format = 1

// ErrNoRecord is returned by Unmarshal for bytes that are not a job.
var ErrNoRecord = errors.New("not a job record")

// Marshal returns the job as the bytes that every broker stores. It fails only
// for text that is not valid UTF-8.
func Marshal(j *Job) ([]byte, error) {
	r := &backstagev1.Record{
		Format:          max(j.Format, Format),
		Requires:        j.Requires,
		Id:              j.ID,
		Task:            j.Task,
		Queue:           j.Queue,
		Payload:         j.Payload,
		EnqueuedAt:      nanos(j.Enqueued),
		FirstDue:        nanos(j.FirstDue),
		Expires:         int64(j.Expires),
		OrderingKey:     j.OrderingKey,
		DedupeKey:       j.Dedupe.Key,
		DedupeFor:       int64(j.Dedupe.For),
		DedupeUntilDone: j.Dedupe.UntilDone,
		Timeout:         int64(j.Overrides.Timeout),
		MaxAttempts:     j.Overrides.MaxAttempts,
		MaxAge:          int64(j.Overrides.MaxAge),
		BackoffBase:     int64(j.Overrides.BackoffBase),
		BackoffCap:      int64(j.Overrides.BackoffCap),
		Failures:        j.Counters.Failures,
		Crashes:         j.Counters.Crashes,
		Snoozes:         j.Counters.Snoozes,
		Parks:           j.Counters.Parks,
		Starts:          j.Counters.Starts,
		StartCrashes:    j.Counters.StartCrashes,
		Replayed:        j.Counters.Replays,
		Root:            j.Root,
		Parent:          j.Parent,
		Edge:            j.Edge,
		Ordinal:         j.Ordinal,
		Headers:         j.Headers,
		Correlation:     j.Correlation,
		Trace:           j.Trace,
		Actor:           j.Actor,
		Tenant:          j.Tenant,
		Codec:           j.Codec,
		KeyId:           j.KeyID,
	}
	for i := range j.History {
		r.History = append(r.History, j.History[i].record())
	}
	for i := range j.Replays {
		r.Replays = append(r.Replays, j.Replays[i].record())
	}
	if len(j.rest) > 0 {
		r.ProtoReflect().SetUnknown(j.rest)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", j.ID, err)
	}
	return b, nil
}

// Unmarshal reads the bytes of a record. It returns ErrNoRecord, wrapped with
// what is wrong, for bytes that are not one. Fields of a newer version are kept
// and written again by Marshal.
func Unmarshal(b []byte) (Job, error) {
	var r backstagev1.Record
	if err := proto.Unmarshal(b, &r); err != nil {
		return Job{}, fmt.Errorf("%w: %w", ErrNoRecord, err)
	}
	if r.Format == 0 || r.Id == "" || r.Task == "" || r.Queue == "" {
		return Job{}, fmt.Errorf("%w: format, id, task or queue is missing", ErrNoRecord)
	}
	j := Job{
		Format:      r.Format,
		Requires:    r.Requires,
		ID:          r.Id,
		Task:        r.Task,
		Queue:       r.Queue,
		Payload:     r.Payload,
		Enqueued:    instant(r.EnqueuedAt),
		FirstDue:    instant(r.FirstDue),
		Expires:     time.Duration(r.Expires),
		OrderingKey: r.OrderingKey,
		Dedupe:      Dedupe{Key: r.DedupeKey, For: time.Duration(r.DedupeFor), UntilDone: r.DedupeUntilDone},
		Overrides: Overrides{
			Timeout:     time.Duration(r.Timeout),
			MaxAttempts: r.MaxAttempts,
			MaxAge:      time.Duration(r.MaxAge),
			BackoffBase: time.Duration(r.BackoffBase),
			BackoffCap:  time.Duration(r.BackoffCap),
		},
		Counters: Counters{
			Failures:     r.Failures,
			Crashes:      r.Crashes,
			Snoozes:      r.Snoozes,
			Parks:        r.Parks,
			Starts:       r.Starts,
			StartCrashes: r.StartCrashes,
			Replays:      r.Replayed,
		},
		Root:        r.Root,
		Parent:      r.Parent,
		Edge:        r.Edge,
		Ordinal:     r.Ordinal,
		Headers:     r.Headers,
		Correlation: r.Correlation,
		Trace:       r.Trace,
		Actor:       r.Actor,
		Tenant:      r.Tenant,
		Codec:       r.Codec,
		KeyID:       r.KeyId,
		rest:        r.ProtoReflect().GetUnknown(),
	}
	for _, f := range r.History {
		j.History = append(j.History, failureOf(f))
	}
	for _, p := range r.Replays {
		j.Replays = append(j.Replays, replayOf(p))
	}
	return j, nil
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

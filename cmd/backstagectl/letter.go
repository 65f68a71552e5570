package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/payload"
	"github.com/backstage-go/backstage/runtime/provider"
)

// letterRow is a dead letter in JSON, as dead list prints it.
type letterRow struct {
	Address      string    `json:"address"`
	Job          string    `json:"job"`
	Queue        string    `json:"queue"`
	Task         string    `json:"task"`
	Class        string    `json:"class"`
	Reason       string    `json:"reason"`
	Worker       string    `json:"worker"`
	Attempt      int32     `json:"attempt"`
	DiedAt       time.Time `json:"died_at"`
	Replays      int32     `json:"replays"`
	Format       uint32    `json:"format"`
	PayloadBytes int       `json:"payload_bytes"`
}

func letterOf(l *provider.DeadLetter) letterRow {
	return letterRow{
		Address: l.Address, Job: l.Job.ID, Queue: l.Queue, Task: l.Job.Task,
		Class: l.Failure.Class, Reason: l.Failure.Message, Worker: l.Failure.Worker, Attempt: l.Failure.Attempt,
		DiedAt: l.At.UTC(), Replays: l.Job.Counters.Replays, Format: l.Job.Format,
		PayloadBytes: len(bytesOf(l)),
	}
}

// bytesOf are the bytes that nobody sees as they are: a job's payload, or what was
// found in a queue and is no job.
func bytesOf(l *provider.DeadLetter) []byte {
	if l.Raw != nil {
		return l.Raw
	}
	return l.Job.Payload
}

// letterPage is all of a dead letter in JSON, as dead show prints it.
type letterPage struct {
	letterRow
	EnqueuedAt     *time.Time        `json:"enqueued_at"`
	FirstDueAt     *time.Time        `json:"first_due_at"`
	ExpiresSeconds float64           `json:"expires_seconds"`
	OrderingKey    string            `json:"ordering_key"`
	Dedupe         dedupeRow         `json:"dedupe"`
	Counters       countersRow       `json:"counters"`
	Requires       []string          `json:"requires"`
	Root           string            `json:"root"`
	Parent         string            `json:"parent"`
	Edge           string            `json:"edge"`
	Correlation    string            `json:"correlation"`
	Trace          string            `json:"trace"`
	Actor          string            `json:"actor"`
	Tenant         string            `json:"tenant"`
	Headers        map[string]string `json:"headers"`
	History        []failureRow      `json:"history"`
	Replayed       []replayRow       `json:"replayed"`
	Payload        payloadRow        `json:"payload"`
}

type dedupeRow struct {
	Key        string  `json:"key"`
	ForSeconds float64 `json:"for_seconds"`
	UntilDone  bool    `json:"until_done"`
}

type countersRow struct {
	Failures int32 `json:"failures"`
	Crashes  int32 `json:"crashes"`
	Snoozes  int32 `json:"snoozes"`
	Parks    int32 `json:"parks"`
}

type failureRow struct {
	At      *time.Time `json:"at"`
	Class   string     `json:"class"`
	Reason  string     `json:"reason"`
	Worker  string     `json:"worker"`
	Attempt int32      `json:"attempt"`
	Detail  string     `json:"detail"`
}

type replayRow struct {
	At       *time.Time `json:"at"`
	Failures int32      `json:"failures"`
	Crashes  int32      `json:"crashes"`
}

// payloadRow is what may be seen of a payload: all of it that no schema marks, or
// how large it is.
type payloadRow struct {
	Bytes   int    `json:"bytes"`
	SHA256  string `json:"sha256"`
	Codec   string `json:"codec"`
	KeyID   string `json:"key_id"`
	Message string `json:"message"`
	// Value is the decoded message, null if there is none.
	Value json.RawMessage `json:"value"`
	// Note says why it is not decoded.
	Note string `json:"note"`
}

func pageOf(l *provider.DeadLetter, schema *payload.Schema) letterPage {
	j := &l.Job
	page := letterPage{
		letterRow:  letterOf(l),
		EnqueuedAt: instant(j.Enqueued), FirstDueAt: instant(j.FirstDue), ExpiresSeconds: j.Expires.Seconds(),
		OrderingKey: j.OrderingKey,
		Dedupe:      dedupeRow{j.Dedupe.Key, j.Dedupe.For.Seconds(), j.Dedupe.UntilDone},
		Counters:    countersRow{j.Counters.Failures, j.Counters.Crashes, j.Counters.Snoozes, j.Counters.Parks},
		Requires:    append([]string{}, j.Requires...),
		Root:        j.Root, Parent: j.Parent, Edge: j.Edge,
		Correlation: j.Correlation, Trace: j.Trace, Actor: j.Actor, Tenant: j.Tenant,
		Headers:  map[string]string{},
		History:  []failureRow{},
		Replayed: []replayRow{},
		Payload:  payloadOf(l, schema),
	}
	for key, value := range j.Headers {
		page.Headers[key] = value
	}
	for _, f := range j.History {
		page.History = append(page.History, failureRow{instant(f.At), f.Class, f.Message, f.Worker, f.Attempt, f.Detail})
	}
	for _, r := range j.Replays {
		page.Replayed = append(page.Replayed, replayRow{instant(r.At), r.Failures, r.Crashes})
	}
	return page
}

// instant is a time, null if it is not known.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func payloadOf(l *provider.DeadLetter, schema *payload.Schema) payloadRow {
	b := bytesOf(l)
	sum := sha256.Sum256(b)
	row := payloadRow{Bytes: len(b), SHA256: hex.EncodeToString(sum[:]), Codec: l.Job.Codec, KeyID: l.Job.KeyID}
	switch {
	case l.Raw != nil:
		row.Note = "the bytes are no job record"
	case l.Job.Format > provider.Format:
		row.Note = newer(&l.Job)
	case l.Job.Codec != "":
		row.Note = fmt.Sprintf("it is encoded by %q, which this program does not know", l.Job.Codec)
	case schema == nil:
		row.Note = "give its schema to see it: -schema FILE or -proto PATH"
	default:
		shown, err := schema.Show(l.Job.Task, l.Job.Payload)
		row.Message, row.Value = shown.Message, shown.JSON
		if err != nil {
			row.Note = err.Error()
		}
	}
	return row
}

// newer says that a record is of a newer version than this program's.
func newer(j *provider.Job) string {
	return fmt.Sprintf("the record has format %d, and this program knows %d: use the backstagectl of a newer version", j.Format, provider.Format)
}

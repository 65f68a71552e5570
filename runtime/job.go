package backstage

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/backstage-go/backstage/runtime/provider"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Job is one job as a value, made by generated code and not stored yet. Its
// payload is marshalled and its keys are computed when it is made: what happens
// to the message later does not change it. Its id is fixed too, so that to
// enqueue a Job again is to try the same job again. The zero Job is refused.
type Job struct{ made *making }

// making is a job under way to the store.
type making struct {
	job     provider.Job
	message protoreflect.MessageType
	needs   Needs
	delay   time.Duration
	at      time.Time     // in place of delay, if set
	invalid *invalidError // why the job cannot be stored
}

// NewJob makes a job of a task. Generated code calls it. What is wrong with the
// payload or the options is reported when the job is enqueued.
func NewJob[M proto.Message](task Task[M], in M, opts ...EnqueueOption) Job {
	m := newMaking(task, in)
	for _, option := range opts {
		if err := option.enqueue(m); err != nil {
			m.fail(err)
		}
	}
	if m.job.ID == "" {
		m.job.ID = rand.Text()
	}
	return Job{m}
}

func newMaking[M proto.Message](task Task[M], in M) *making {
	m := &making{
		job: provider.Job{
			Task:    task.Name,
			Queue:   cmp.Or(task.Queue, DefaultQueue),
			Expires: task.Expires,
		},
		message: in.ProtoReflect().Type(),
		needs:   task.Needs(),
		delay:   task.Delay,
	}
	if !in.ProtoReflect().IsValid() {
		m.fail(errors.New("the payload is nil"))
		return m
	}
	payload, err := marshal(in)
	if err != nil {
		m.fail(err)
		return m
	}
	m.job.Payload = payload
	if task.Dedupe != nil {
		key, err := task.Dedupe(in)
		if err != nil {
			m.fail(inKey(err, task.Name, "dedupe"))
		}
		m.job.Dedupe = provider.Dedupe{
			Key:       task.Name + ":" + key,
			For:       task.DedupeFor,
			UntilDone: task.DedupeUntilDone,
		}
	}
	if task.OrderingKey != nil {
		key, err := task.OrderingKey(in)
		if err != nil {
			m.fail(inKey(err, task.Name, "ordering_key"))
		}
		m.job.OrderingKey = cmp.Or(key, emptyOrderingKey)
	}
	return m
}

// emptyOrderingKey stands for a key all of whose fields may be empty and are: with
// none the job would have no order. No value makes it, because values are escaped.
const emptyOrderingKey = "%"

func (m *making) setHeader(key, value string) error {
	if err := checkText("Header", key); err != nil {
		return err
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("Header(%q): the value is not valid UTF-8", key)
	}
	headers := maps.Clone(m.job.Headers)
	if headers == nil {
		headers = make(map[string]string)
	}
	headers[key] = value
	m.job.Headers = headers
	return nil
}

// wait returns how long the job waits if it is sent at a time.
func (m *making) wait(now time.Time) time.Duration {
	if m.at.IsZero() {
		return m.delay
	}
	return max(0, m.at.Sub(now))
}

// stamped makes job the one that is sent at a time.
func (m *making) stamped(job *provider.Job, now time.Time) {
	*job = m.job
	job.Delay = m.wait(now)
	job.Enqueued = now
	job.FirstDue = now.Add(job.Delay)
}

// String names the job in logs, by its task and its id: never by its payload.
func (j Job) String() string {
	return cmp.Or(jobName(j.Task(), j.ID()), "zero job")
}

// ID returns the job's id.
func (j Job) ID() string { return j.get().job.ID }

// Task returns the task's name on the wire.
func (j Job) Task() string { return j.get().job.Task }

// Queue returns the queue where the job will wait.
func (j Job) Queue() string { return j.get().job.Queue }

// Delay returns how long the job would wait if it were sent now.
func (j Job) Delay() time.Duration {
	m := j.get()
	if m.at.IsZero() {
		return m.delay
	}
	return max(0, time.Until(m.at))
}

// At returns the time that the option At gave the job, and the zero time if it
// waits for a duration, or not at all.
func (j Job) At() time.Time { return j.get().at }

// DedupeKey returns the job's dedupe key, scoped by its task; empty if it has
// none.
func (j Job) DedupeKey() string { return j.get().job.Dedupe.Key }

// OrderingKey returns the job's ordering key; empty if it has none.
func (j Job) OrderingKey() string { return j.get().job.OrderingKey }

// Header returns a header of the job; empty if it has no such header.
func (j Job) Header(key string) string { return j.get().job.Headers[key] }

// Message returns the payload, as a message of its own; nil for the zero Job.
func (j Job) Message() proto.Message {
	m := j.get()
	if m.message == nil {
		return nil
	}
	message := m.message.New().Interface()
	if err := proto.Unmarshal(m.job.Payload, message); err != nil {
		return nil // what was marshalled here cannot fail to unmarshal
	}
	return message
}

// Err returns why the job cannot be stored, whatever the provider: empty key
// fields, options out of range, all that is wrong.
func (j Job) Err() error { return j.get().err() }

// With returns a copy of the job with more options, for interceptors.
func (j Job) With(opts ...EnqueueOption) Job {
	m := *j.get()
	for _, option := range opts {
		if err := option.enqueue(&m); err != nil {
			m.fail(err)
		}
	}
	return Job{&m}
}

func (j Job) get() *making {
	if j.made == nil {
		return madeOfZero()
	}
	return j.made
}

// madeOfZero is not inlined: all that ask a job would have room for one on their
// stacks.
//
//go:noinline
func madeOfZero() *making { return &making{invalid: &invalidError{errs: []error{errZeroJob}}} }

package backstage

import (
	"cmp"
	"context"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Info is what is known of a job while it runs.
type Info struct {
	// ID is the job's id: the same in every run, and the natural idempotency key
	// for its effects.
	ID string
	// Task is the task's name on the wire, as the job carries it (perhaps an
	// alias).
	Task string
	// Queue is where it waited.
	Queue string
	// Worker is the name of the worker that runs it.
	Worker string
	// Attempt is the number of this run, counted by failures, from 1.
	Attempt int
	// MaxAttempts is how many runs may end in failure.
	MaxAttempts int
	// Crashes counts runs that never reached an outcome because their worker
	// died. Above zero, effects of this job may exist already.
	Crashes int
	// Snoozes counts runs that asked to be run later.
	Snoozes int
	// Replays counts returns out of the dead letters.
	Replays int
	// Enqueued is when the job was made.
	Enqueued time.Time
	// FirstDue is when it could first start.
	FirstDue time.Time
	// Root is the id of the first job of the chain: its own id if this is it.
	Root string
	// Parent is the id of the job that made this one; empty if a client did.
	Parent string
	// Edge names the declared edge that led here; empty if a client enqueued it.
	Edge string
	// OrderingKey is the job's ordering key, if it has one.
	OrderingKey string
	// Headers travel with the job. They must not be modified.
	Headers map[string]string
}

type infoKey struct{}

// InfoFrom returns what is known of the job that a handler runs, from the
// handler's context or one made from it. ok is false elsewhere.
func InfoFrom(ctx context.Context) (info Info, ok bool) {
	run, ok := ctx.Value(infoKey{}).(*Run)
	if !ok {
		return Info{}, false
	}
	return run.Info(), true
}

// infoOf returns what is known of a job that a worker runs.
func infoOf(job *provider.Job, worker string, maxAttempts int) Info {
	return Info{
		ID:          job.ID,
		Task:        job.Task,
		Queue:       job.Queue,
		Worker:      worker,
		Attempt:     int(job.Counters.Failures) + 1,
		MaxAttempts: maxAttempts,
		Crashes:     int(job.Counters.Crashes),
		Snoozes:     int(job.Counters.Snoozes),
		Replays:     int(job.Counters.Replays),
		Enqueued:    job.Enqueued,
		FirstDue:    job.FirstDue,
		Root:        cmp.Or(job.Root, job.ID),
		Parent:      job.Parent,
		Edge:        job.Edge,
		OrderingKey: job.OrderingKey,
		Headers:     job.Headers,
	}
}

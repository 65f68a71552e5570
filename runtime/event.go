package backstage

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Observer is told what happens, as one of the event types of this package. It is
// called synchronously, by many goroutines at once, and must not block. Metrics
// and traces hang on it. If it panics, that is logged, and the job goes on.
//
//	JobEnqueued       a client's job was stored, a duplicate, refused, or is unknown
//	WorkerStarted     a worker receives
//	WorkerStopped     its Run returns
//	RunStarted        a handler is called
//	RunEnded          a handler returned, or a guard skipped
//	RunStuck          a handler still runs one lease after its deadline
//	LeaseLost         a job is no longer this worker's
//	JobSettled        a delivery is settled: acked, retried, dead-lettered, released
//	SettlementFailed  a settlement did not succeed and is tried again
//	ProviderReported  the provider reports something
//	PromoterFailed    delayed jobs are not promoted, for now
type Observer func(Event)

// guarded returns an observer whose panics are logged and go no further. They
// would end the process, for which every job that runs in it counts a crash, or
// look to a caller as if its jobs were not stored.
func (o Observer) guarded(log *slog.Logger) Observer {
	if o == nil {
		return nil
	}
	return func(e Event) {
		defer func() {
			if p := recover(); p != nil {
				log.Error("the observer panicked", "event", fmt.Sprintf("%T", e), "panic", p, "stack", string(debug.Stack()))
			}
		}()
		o(e)
	}
}

// Event is one of the event types of this package.
type Event interface{ event() }

// JobEnqueued says what became of a client's job.
type JobEnqueued struct {
	// Job is the job.
	Job Job
	// Receipt is what its caller got.
	Receipt Receipt
}

// WorkerStarted says that a worker receives.
type WorkerStarted struct {
	// Worker is its name.
	Worker string
	// Queues are those it serves.
	Queues []string
}

// WorkerStopped says that a worker's Run returns.
type WorkerStopped struct {
	// Worker is its name.
	Worker string
	// Err is what Run returns.
	Err error
}

// RunStarted says that a handler is called.
type RunStarted struct {
	// Job is the job.
	Job Info
	// Waited is how long ago the job was first due.
	Waited time.Duration
}

// RunEnded says how a run ended.
type RunEnded struct {
	// Job is the job.
	Job Info
	// Result is how.
	Result Result
	// Err is the handler's error or what the panic said; nil if it returned nil.
	Err error
	// Reason and Guard say why a run was skipped, and by which guard, if by one.
	Reason, Guard string
	// Took is how long the handler ran.
	Took time.Duration
	// Late says that it returned after its deadline.
	Late bool
}

// RunStuck says that a handler still runs one lease after its deadline. Its slot
// stays occupied.
type RunStuck struct {
	// Job is the job.
	Job Info
	// Running is for how long it runs.
	Running time.Duration
}

// LeaseLost says that a job is no longer this worker's. Another may run it.
type LeaseLost struct {
	// Job is the job.
	Job Info
	// Running says whether its handler was still running; its context is
	// cancelled then.
	Running bool
}

// JobSettled says what became of a delivery.
type JobSettled struct {
	// Job is the job.
	Job Info
	// Settlement is what.
	Settlement Settlement
	// Next is how many next jobs were stored with an ack.
	Next int
	// Why and After say for what and after how long a retry is.
	Why   provider.Why
	After time.Duration
	// Failure is why the job was dead-lettered, or the failure before a retry.
	Failure provider.Failure
}

// SettlementFailed says that a settlement did not succeed. It is tried again
// while the lease holds; then the job is delivered again.
type SettlementFailed struct {
	// Job is the job.
	Job Info
	// Settlement is what was tried.
	Settlement Settlement
	// Err is why it failed.
	Err error
}

// ProviderReported passes on what the provider reports.
type ProviderReported struct {
	// Event is the provider's.
	Event provider.Event
}

// PromoterFailed says that the promotion of delayed jobs failed; it is started
// again.
type PromoterFailed struct {
	// Err is why.
	Err error
}

// Result is how a run ended.
type Result string

// The results of a run.
const (
	ResultDone      Result = "done"
	ResultSkipped   Result = "skipped"
	ResultFailed    Result = "failed"
	ResultTimeout   Result = "timeout"
	ResultPanic     Result = "panic"
	ResultExit      Result = "exit"
	ResultPermanent Result = "permanent"
	ResultSnoozed   Result = "snoozed"
	ResultStopped   Result = "stopped"
	ResultLost      Result = "lost"
)

// Settlement is what was done with a delivery.
type Settlement string

// The settlements.
const (
	Acked        Settlement = "acked"
	Retried      Settlement = "retried"
	DeadLettered Settlement = "dead-lettered"
	Released     Settlement = "released"
)

// result is how a run ended, for observers.
func (h how) result() Result {
	switch h {
	case done:
		return ResultDone
	case skipped:
		return ResultSkipped
	case timedOut:
		return ResultTimeout
	case panicked:
		return ResultPanic
	case exited:
		return ResultExit
	case permanent:
		return ResultPermanent
	case snoozed:
		return ResultSnoozed
	case stopped:
		return ResultStopped
	case leaseLost:
		return ResultLost
	}
	return ResultFailed
}

// settlement is what was done with a delivery, for observers.
func (v verb) settlement() Settlement {
	switch v {
	case verbAck:
		return Acked
	case verbRetry:
		return Retried
	case verbDead:
		return DeadLettered
	}
	return Released
}

func (JobEnqueued) event()      {}
func (WorkerStarted) event()    {}
func (WorkerStopped) event()    {}
func (RunStarted) event()       {}
func (RunEnded) event()         {}
func (RunStuck) event()         {}
func (LeaseLost) event()        {}
func (JobSettled) event()       {}
func (SettlementFailed) event() {}
func (ProviderReported) event() {}
func (PromoterFailed) event()   {}

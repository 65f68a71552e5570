package backstage

import (
	"log/slog"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// What a shift tells operators of its jobs. Payloads are never logged.

const (
	// parksLogged is how often parks of one task are logged: a queue full of jobs
	// that nobody here knows must not fill the log as well.
	parksLogged = time.Minute
	// parksKnown bounds the task names that are remembered for it: they come from
	// the queue, and may be anything.
	parksKnown = 1000
)

// parkLog is what was logged of the parks of one task.
type parkLog struct {
	at     time.Time // of the last line
	silent int       // parks since then
}

// logRun tells of a run of a job whose workers have died, in whichever of its runs.
func (s *shift) logRun(e *execution) {
	if crashes := e.job.Counters.Crashes; crashes > 0 {
		s.cfg.Logger.Info("a job runs whose workers died", "job", e.job.ID, "task", e.job.Task,
			"queue", e.job.Queue, "crashes", crashes)
	}
}

// logEnd tells how a run ended, where its settlement does not say it.
func (s *shift) logEnd(e *execution, end ending, took time.Duration, late bool) {
	switch {
	case end.how == skipped:
		s.cfg.Logger.Debug("a job is skipped", "job", e.job.ID, "task", e.job.Task, "reason", end.err.Error(), "guard", end.guard)
	case end.how == done && late:
		s.cfg.Logger.Warn("a handler returned nil after its deadline: its job is done all the same",
			"job", e.job.ID, "task", e.job.Task, "took", took, "timeout", e.policy.Timeout)
	}
}

// logSettled tells of deliveries that did not end well.
func (s *shift) logSettled(e *execution, st settlement) {
	switch {
	case st.verb == verbDead:
		s.cfg.Logger.Error("a job is dead-lettered", withStack(*st.failure, "job", e.job.ID, "task", e.job.Task, "queue", e.job.Queue,
			"class", st.failure.Class, "error", st.failure.Message)...)
	case st.verb == verbRetry && st.again.Why == provider.FailedAgain:
		f := st.again.Failure
		s.cfg.Logger.Warn("a job failed and is retried", withStack(f, "job", e.job.ID, "task", e.job.Task, "attempt", f.Attempt,
			"after", st.again.After, "class", f.Class, "error", f.Message)...)
	case st.verb == verbRetry && st.again.Why == provider.ParkedAgain:
		s.logPark(e, st)
	}
}

func withStack(f provider.Failure, attrs ...any) []any {
	if f.Detail != "" {
		attrs = append(attrs, "stack", f.Detail)
	}
	return attrs
}

// logPark tells of the first park of a task, and then once in a while, with how
// many went untold.
func (s *shift) logPark(e *execution, st settlement) {
	now := time.Now()
	s.mu.Lock()
	log, known := s.parks[e.job.Task]
	say := !known || now.Sub(log.at) >= parksLogged
	silent := log.silent
	if say {
		log = parkLog{at: now}
	} else {
		log.silent++
	}
	if !known && len(s.parks) >= parksKnown {
		clear(s.parks)
	}
	s.parks[e.job.Task] = log
	s.mu.Unlock()
	if say {
		s.cfg.Logger.Warn("a job is parked", "job", e.job.ID, "task", e.job.Task, "queue", e.job.Queue, "error", st.parked,
			"after", st.again.After, "parks", e.job.Counters.Parks+1, "not_logged", silent)
	}
}

// providerReported passes on and logs what the provider says of itself.
func (s *shift) providerReported(e provider.Event) {
	s.observe(ProviderReported{Event: e})
	level := slog.LevelWarn
	if e.Kind == provider.Reconnected || e.Kind == provider.Unblocked || e.Kind == provider.Resumed {
		level = slog.LevelInfo
	}
	attrs := []any{"provider", e.Provider}
	if e.Queue != "" {
		attrs = append(attrs, "queue", e.Queue)
	}
	if e.Count != 0 {
		attrs = append(attrs, "count", e.Count)
	}
	if e.Message != "" {
		attrs = append(attrs, "message", e.Message)
	}
	if e.Err != nil {
		attrs = append(attrs, "error", e.Err)
	}
	s.cfg.Logger.Log(s.settling, level, "provider: "+string(e.Kind), attrs...)
}

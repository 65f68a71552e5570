package backstage

import (
	"errors"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/google/go-cmp/cmp"
)

// TestSettlementTable is the settlement table, row by row.
func TestSettlementTable(t *testing.T) {
	t.Parallel()
	var (
		now  = time.Unix(1_000_000, 0)
		boom = errors.New("boom")
		dead = func(class string, attempt int32) *provider.Failure {
			return &provider.Failure{At: now, Class: class, Message: "boom", Worker: "w", Attempt: attempt}
		}
		retried = func(class string, after time.Duration, attempt int32) *provider.Again {
			return &provider.Again{Why: provider.FailedAgain, After: after, Failure: *dead(class, attempt)}
		}
		child  = []provider.Job{{ID: "child"}}
		policy = Policy{MaxAttempts: 3, MaxAge: time.Hour, Backoff: Backoff{Base: time.Second, Cap: time.Second}}
		fresh  = provider.Job{ID: "j", FirstDue: now}
		third  = provider.Job{ID: "j", FirstDue: now, Counters: provider.Counters{Failures: 2}}
		old    = provider.Job{ID: "j", FirstDue: now.Add(-time.Hour)}
		nearly = provider.Job{ID: "j", FirstDue: now.Add(-time.Hour + 500*time.Millisecond)}
		parked = provider.Job{ID: "j", FirstDue: now, Counters: provider.Counters{Parks: 4}}
		often  = provider.Job{ID: "j", FirstDue: now, Counters: provider.Counters{Parks: 1_000_000}}
	)
	for _, row := range []struct {
		name string
		end  ending
		job  provider.Job
		want settlement
	}{
		{"nil acks with the next jobs", ending{how: done, next: child}, fresh, settlement{verb: verbAck, next: child}},
		{"skip acks without next jobs", ending{how: skipped, next: child, err: boom}, fresh, settlement{verb: verbAck}},

		{"an error is retried after the backoff", ending{how: failed, err: boom}, fresh,
			settlement{verb: verbRetry, again: retried(provider.ClassFailed, time.Second, 1)}},
		{"a timeout is retried as one", ending{how: timedOut, err: boom}, fresh,
			settlement{verb: verbRetry, again: retried(provider.ClassTimeout, time.Second, 1)}},
		{"a panic is retried as one", ending{how: panicked, err: boom}, fresh,
			settlement{verb: verbRetry, again: retried(provider.ClassPanic, time.Second, 1)}},
		{"Goexit is retried as one", ending{how: exited, err: boom}, fresh,
			settlement{verb: verbRetry, again: retried(provider.ClassExit, time.Second, 1)}},
		{"RetryAfter waits as asked", ending{how: failedWait, err: boom, wait: time.Minute}, fresh,
			settlement{verb: verbRetry, again: retried(provider.ClassFailed, time.Minute, 1)}},
		{"the last attempt is exhausted", ending{how: failed, err: boom}, third,
			settlement{verb: verbDead, failure: dead(provider.ClassExhausted, 3)}},
		{"RetryAfter does not add attempts", ending{how: failedWait, err: boom, wait: time.Minute}, third,
			settlement{verb: verbDead, failure: dead(provider.ClassExhausted, 3)}},
		{"no retry after max age", ending{how: failed, err: boom}, old,
			settlement{verb: verbDead, failure: dead(provider.ClassTooOld, 1)}},
		{"no retry that would start after max age", ending{how: failed, err: boom}, nearly,
			settlement{verb: verbDead, failure: dead(provider.ClassTooOld, 1)}},
		{"Permanent is dead at once", ending{how: permanent, err: boom}, fresh,
			settlement{verb: verbDead, failure: dead(provider.ClassPermanent, 1)}},
		{"an invalid next job is permanent", ending{how: invalidNext, err: boom}, fresh,
			settlement{verb: verbDead, failure: dead(provider.ClassPermanent, 1)}},

		{"snooze counts as nothing", ending{how: snoozed, err: boom, wait: time.Minute}, third,
			settlement{verb: verbRetry, again: &provider.Again{Why: provider.SnoozedAgain, After: time.Minute}}},
		{"snooze is bounded by max age", ending{how: snoozed, err: boom, wait: time.Second}, nearly,
			settlement{verb: verbDead, failure: dead(provider.ClassTooOld, 0)}},

		{"an undecodable payload is dead", ending{how: undecodable, err: boom}, fresh,
			settlement{verb: verbDead, failure: dead(provider.ClassUndecodable, 0)}},
		{"an expired job is dead", ending{how: expired, err: boom}, fresh,
			settlement{verb: verbDead, failure: dead(provider.ClassExpired, 0)}},
		{"a crashed job is dead", ending{how: crashed, err: boom}, fresh,
			settlement{verb: verbDead, failure: dead(provider.ClassCrashed, 0)}},

		{"an unknown task is parked", ending{how: noHandler, err: boom}, fresh,
			settlement{verb: verbRetry, again: &provider.Again{Why: provider.ParkedAgain, After: time.Second}, parked: boom}},
		{"parks grow", ending{how: noHandler, err: boom}, parked,
			settlement{verb: verbRetry, again: &provider.Again{Why: provider.ParkedAgain, After: 5 * time.Second}, parked: boom}},
		{"parks are bounded and do not overflow", ending{how: noHandler, err: boom}, often,
			settlement{verb: verbRetry, again: &provider.Again{Why: provider.ParkedAgain, After: 5 * time.Minute}, parked: boom}},
		{"a record of a newer version is parked", ending{how: tooNew, err: boom}, fresh,
			settlement{verb: verbRetry, again: &provider.Again{Why: provider.ParkedAgain, After: time.Second}, parked: boom}},
		{"the last park ends at max age", ending{how: noHandler, err: boom}, nearly,
			settlement{verb: verbRetry, again: &provider.Again{Why: provider.ParkedAgain, After: 500 * time.Millisecond}, parked: boom}},
		{"an unknown task is dead after max age", ending{how: noHandler, err: boom}, old,
			settlement{verb: verbDead, failure: dead(provider.ClassUnknownTask, 0)}},

		{"a suspect's start is put on record", ending{how: startUnknown}, fresh,
			settlement{verb: verbRetry, again: &provider.Again{Why: provider.StartedAgain}}},
		{"shutdown releases", ending{how: stopped, err: boom}, fresh, settlement{verb: verbRelease}},
		{"a lost lease is left alone", ending{how: leaseLost, err: boom}, fresh, settlement{verb: verbLeave}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := settle(row.end, settling{job: &row.job, policy: policy, now: now, worker: "w"})
			same := cmp.Comparer(func(a, b error) bool { return a == b })
			if diff := cmp.Diff(row.want, got, same, cmp.AllowUnexported(settlement{}, provider.Job{}, provider.Failure{})); diff != "" {
				t.Errorf("settlement (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSuspectsAreParkedShortlyAndDoNotComeBackInStep(t *testing.T) {
	t.Parallel()
	waits := make(map[time.Duration]bool)
	for range 100 {
		st := settle(ending{how: suspectWaits}, settling{job: &provider.Job{Counters: provider.Counters{Parks: 2}}})
		if st.verb != verbRetry || st.again.Why != provider.ParkedAgain || st.again.After < 200*time.Millisecond || st.again.After > 400*time.Millisecond {
			t.Fatalf("third time: %+v, want parked for 200 to 400 ms", st)
		}
		waits[st.again.After] = true
	}
	if len(waits) < 50 {
		t.Errorf("%d different waits of 100", len(waits))
	}
}

// TestJudge is how a handler's error and the cause of its context's end are read.
func TestJudge(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, row := range []struct {
		name  string
		err   error
		cause error
		want  how
	}{
		{"nil", nil, nil, done},
		{"nil after the deadline is done", nil, ErrTimeout, done},
		{"nil after the lease was lost is done, and the store refuses it", nil, ErrLeaseLost, done},
		{"an error", boom, nil, failed},
		{"an error after the deadline", boom, ErrTimeout, timedOut},
		{"an error of a run that was cut off by the shutdown", boom, ErrShutdown, stopped},
		{"an error of a run whose lease was lost", boom, ErrLeaseLost, leaseLost},
		{"Permanent, wrapped", errors.Join(Permanent(boom)), nil, permanent},
		{"Permanent counts when cut off", Permanent(boom), ErrShutdown, permanent},
		{"Skip", Skip("gone"), nil, skipped},
		{"Snooze", Snooze(time.Second), nil, snoozed},
		{"RetryAfter", RetryAfter(boom, time.Second), nil, failedWait},
		{"RetryAfter of a run that was cut off", RetryAfter(boom, time.Second), ErrShutdown, stopped},
	} {
		if got := judge(row.err, row.cause); got.how != row.want {
			t.Errorf("%s: how = %d, want %d", row.name, got.how, row.want)
		}
	}
	if Permanent(nil) != nil || RetryAfter(nil, time.Second) != nil {
		t.Error("Permanent(nil) and RetryAfter(nil, …) must be nil: a handler wraps what it got")
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
	if diff := cmp.Diff(want, Backoff{Base: time.Second, Cap: 5 * time.Second}.Schedule(6)); diff != "" {
		t.Errorf("ceilings (-want +got):\n%s", diff)
	}
	if got := (Backoff{Base: time.Hour, Cap: 1<<63 - 1}).Ceiling(1 << 40); got != 1<<63-1 {
		t.Errorf("far retry: ceiling = %v, want the cap, without overflow", got)
	}
	if got := (Backoff{Base: 10 * time.Minute}).Ceiling(1); got != 10*time.Minute {
		t.Errorf("a base above the default cap: ceiling = %v, want the base", got)
	}
	constant := Backoff{Base: time.Second, Cap: time.Second}
	full := Backoff{Base: time.Second, Cap: time.Minute}
	var low, high bool
	for range 200 {
		if got := constant.wait(3); got != time.Second {
			t.Fatalf("constant backoff waits %v", got)
		}
		got := full.wait(3)
		if got < 0 || got > 4*time.Second {
			t.Fatalf("wait before retry 3 = %v, want between 0 and 4s", got)
		}
		low, high = low || got < time.Second, high || got > 3*time.Second
	}
	if !low || !high {
		t.Error("200 waits before retry 3 are not spread over 0 to 4s: no full jitter")
	}
}

func TestPolicyPrecedence(t *testing.T) {
	t.Parallel()
	code := Policy{Timeout: time.Second, MaxAttempts: 2}
	call := provider.Overrides{Timeout: time.Hour, BackoffBase: time.Minute, BackoffCap: time.Minute}
	want := Policy{Timeout: time.Hour, MaxAttempts: 2, MaxAge: DefaultMaxAge, Backoff: Backoff{time.Minute, time.Minute}}
	if diff := cmp.Diff(want, code.over(call)); diff != "" {
		t.Errorf("call over code over default (-want +got):\n%s", diff)
	}
}

package backstage_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestShutdownWaitsForHandlers(t *testing.T) {
	inRounds(t, func(r *rig) {
		w := r.start(backstage.WorkerConfig{ShutdownGrace: time.Minute}, handle("a", func(ctx context.Context, _ string) error {
			time.Sleep(50 * time.Second)
			return ctx.Err()
		}))
		id := r.enqueue(job(task("a"), "")).ID
		pass(time.Second)
		began := time.Now()
		if err := w.stop(); err != nil {
			r.Errorf("Run = %v, want nil", err)
		}
		if took := time.Since(began); took != 49*time.Second {
			r.Errorf("the stop took %v, want the 49s that the handler needed", took)
		}
		r.wantLife(id, "enqueued: stored", "run 1", "done", "acked")
		r.wantNothingLeft()
	})
}

// TestShutdownCancelsAndReleases what does not end within the grace period, and
// counts nothing.
func TestShutdownCancelsAndReleases(t *testing.T) {
	inRounds(t, func(r *rig) {
		a := handle("a", func(ctx context.Context, in string) error {
			if info, _ := backstage.InfoFrom(ctx); info.Attempt != 1 || info.Crashes != 0 {
				r.Errorf("attempt %d, crashes %d; want 1 and 0", info.Attempt, info.Crashes)
			}
			if in == "quick" {
				return nil
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, backstage.ErrShutdown) {
				r.Errorf("cause = %v, want ErrShutdown", cause)
			}
			if in == "in time" {
				return nil
			}
			return ctx.Err()
		}, backstage.Policy{Timeout: time.Hour, MaxAttempts: 1})
		w := r.start(backstage.WorkerConfig{ShutdownGrace: 10 * time.Second}, a)
		cut := r.enqueue(job(task("a"), "cut")).ID
		inTime := r.enqueue(job(task("a"), "in time")).ID
		pass(time.Second)
		began := time.Now()
		if err := w.stop(); err != nil {
			r.Errorf("Run = %v, want nil: all was settled", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			r.Errorf("the stop took %v, want the grace of 10s", took)
		}
		r.wantLife(cut, "enqueued: stored", "run 1", "stopped", "released")
		r.wantLife(inTime, "enqueued: stored", "run 1", "done", "acked")
		again := r.start(backstage.WorkerConfig{ShutdownGrace: time.Second}, a)
		pass(0)
		r.wantLife(cut, "enqueued: stored", "run 1", "stopped", "released", "run 1")
		if err := again.stop(); err != nil {
			r.Errorf("second worker: Run = %v", err)
		}
	})
}

// TestShutdownWithAHandlerThatIgnoresItsContext returns and counts it.
func TestShutdownWithAHandlerThatIgnoresItsContext(t *testing.T) {
	inBubble(t, func(r *rig) {
		release := make(chan struct{})
		w := r.start(backstage.WorkerConfig{ShutdownGrace: 10 * time.Second}, handle("a", func(context.Context, string) error { <-release; return nil },
			backstage.Policy{Timeout: time.Second}))
		id := r.enqueue(job(task("a"), "")).ID
		r.enqueue(job(task("a"), ""))
		pass(time.Second)
		began := time.Now()
		err := w.stop()
		if err == nil || !strings.Contains(err.Error(), "2 jobs were not settled") {
			r.Errorf("Run = %v, want an error that counts the two jobs", err)
		}
		if took := time.Since(began); took > 17*time.Second {
			r.Errorf("the stop took %v, want the grace and some seconds", took)
		}
		var runs counter
		r.other().start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { runs.add(); return nil }))
		pass(time.Minute)
		if runs.get() != 2 {
			r.Errorf("%d jobs were run by another worker after their lease, want 2", runs.get())
		}
		close(release)
		pass(time.Second)
		acks := 0
		for _, word := range r.events.life(id) {
			if word == "acked" {
				acks++
			}
		}
		if acks != 1 {
			r.Errorf("life %v, want one ack: the late return of a stopped worker's handler settles nothing", r.events.life(id))
		}
	})
}

// TestShutdownReleasesWhatArrivesLate, and tries again if that fails.
func TestShutdownReleasesWhatArrivesLate(t *testing.T) {
	inBubble(t, func(r *rig) {
		var failed atomic.Bool
		r.hooks.settle = func(verb string, _ provider.Delivery, do func() error) error {
			if verb == "release" && failed.CompareAndSwap(false, true) {
				return errBoom
			}
			return do()
		}
		r.hooks.receive = func(ctx context.Context, _ []string, _ int, do func() ([]provider.Delivery, error)) ([]provider.Delivery, error) {
			got, err := do()
			<-ctx.Done() // what was received reaches the runtime after its end
			return got, err
		}
		w := r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { r.Error("a job that arrived while stopping ran"); return nil }))
		id := r.enqueue(job(task("a"), "")).ID
		pass(time.Second)
		if err := w.stop(); err != nil {
			r.Errorf("Run = %v, want nil", err)
		}
		r.wantLife(id, "enqueued: stored", "not released", "released")
		var crashes counter
		o := r.other()
		o.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			info, _ := backstage.InfoFrom(ctx)
			crashes.n.Add(int64(info.Crashes))
			return nil
		}))
		pass(0)
		r.wantNothingLeft()
		if crashes.get() != 0 {
			r.Error("the release counted as a crash")
		}
	})
}

// TestShutdownWhileNothingCanBeSettled returns and counts it.
func TestShutdownWhileNothingCanBeSettled(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.settle = func(string, provider.Delivery, func() error) error { return errBoom }
		w := r.start(backstage.WorkerConfig{ShutdownGrace: 10 * time.Second}, handle("a", nothing))
		r.enqueue(job(task("a"), ""))
		pass(time.Second)
		began := time.Now()
		if err := w.stop(); err == nil || !strings.Contains(err.Error(), "1 jobs were not settled") {
			r.Errorf("Run = %v, want an error that counts the job", err)
		}
		if took := time.Since(began); took > 20*time.Second {
			r.Errorf("the stop took %v, want the grace and some seconds", took)
		}
	})
}

// TestStoppingFromAHandler and many times over does not block or panic.
func TestStoppingFromAHandler(t *testing.T) {
	inBubble(t, func(r *rig) {
		var w *running
		w = r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			w.cancel()
			w.cancel()
			return nil
		}))
		r.enqueue(job(task("a"), ""))
		<-w.done
		if w.err != nil {
			r.Errorf("Run = %v, want nil", w.err)
		}
		r.wantNothingLeft()
	})
}

// TestShutdownLosesNothing under load: all jobs end, none is counted.
func TestShutdownLosesNothing(t *testing.T) {
	inRounds(t, func(r *rig) {
		runs := newLedger()
		a := handle("a", func(ctx context.Context, in string) error {
			if info, _ := backstage.InfoFrom(ctx); info.Attempt != 1 || info.Crashes != 0 {
				r.Errorf("attempt %d, crashes %d; want 1 and 0", info.Attempt, info.Crashes)
			}
			select {
			case <-time.After(700 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			runs.write(in)
			return nil
		}, backstage.Policy{MaxAttempts: 1})
		for range 100 {
			r.enqueue(job(task("a"), "x"))
		}
		for range 20 {
			w := r.start(backstage.WorkerConfig{Concurrency: 8, ShutdownGrace: 100 * time.Millisecond}, a)
			pass(time.Second)
			if err := w.stop(); err != nil {
				r.Fatalf("Run = %v", err)
			}
		}
		if runs.count() != 100 {
			r.Errorf("%d of 100 jobs were done, each once", runs.count())
		}
		r.wantNothingLeft()
	})
}

// TestAGracePeriodWithoutEnd waits for its handlers.
func TestAGracePeriodWithoutEnd(t *testing.T) {
	inBubble(t, func(r *rig) {
		w := r.start(backstage.WorkerConfig{ShutdownGrace: math.MaxInt64}, handle("a", func(context.Context, string) error {
			time.Sleep(time.Minute)
			return nil
		}))
		r.enqueue(job(task("a"), "x"))
		pass(time.Second)
		if err := w.stop(); err != nil {
			r.Errorf("stop: %v", err)
		}
		r.wantNothingLeft()
	})
}

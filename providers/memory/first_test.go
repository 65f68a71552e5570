package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func TestPublishReceiveRetryAck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		w := d.worker(d.p, "q")
		d.publish(d.job("q"), d.job("q", after(time.Minute)))
		run := w.one("job-1")
		if err := run.Retry(t.Context(), provider.Again{Why: provider.FailedAgain, After: time.Hour}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		d.ack(w.one("job-2"))
		is(t, "waited", time.Since(start), time.Minute)
		run = w.one("job-1")
		is(t, "waited", time.Since(start), time.Hour)
		is(t, "failures", run.Job().Counters.Failures, 1)
		d.ack(run)
		w.nothing(time.Hour)
	})
}

//go:build unix

package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// resumes is how soon a worker works again after its broker does.
const resumes = 10*time.Second + room

// outage is a way in which a broker goes away and comes back.
type outage struct {
	name       string
	begin, end func(t *testing.T, on *server) error
}

func outages() []outage {
	return []outage{
		{"the broker is killed and started again",
			func(_ *testing.T, on *server) error { return on.Kill() },
			func(t *testing.T, on *server) error { return on.Restart(t.Context()) }},
		{"the broker is stopped and started again",
			func(t *testing.T, on *server) error { return on.Stop(t.Context()) },
			func(t *testing.T, on *server) error { return on.Restart(t.Context()) }},
		{"the broker hangs",
			func(_ *testing.T, on *server) error { return on.Pause() },
			func(_ *testing.T, on *server) error { return on.Resume() }},
		{"the network is silent, and connections that were open stay so",
			func(_ *testing.T, on *server) error { on.proxy.Blackhole(); return nil },
			func(_ *testing.T, on *server) error { on.proxy.Resume(); return nil }},
		{"the network is silent, and connections are cut in the end",
			func(_ *testing.T, on *server) error { on.proxy.Blackhole(); return nil },
			func(_ *testing.T, on *server) error { on.proxy.Cut(); on.proxy.Resume(); return nil }},
	}
}

func TestAWorkerSaysThatItIsDeafAndWorksAgainAfterAnOutage(t *testing.T) {
	t.Parallel()
	for _, outage := range outages() {
		t.Run(outage.name, func(t *testing.T) {
			onEachServer(t, func(t *testing.T, s *stage, on *server) {
				w := s.worker("q", 4, s.lease(), deeds{s.ledger}.do)
				var longest time.Duration
				for i := range long(1, 20) {
					longest = max(longest, s.suffer(w, on, outage, i))
				}
				t.Logf("from the end of an outage to the next run: %v at most", longest)
				s.untilQuiet(time.Minute)
				s.checkNoneIsDead()
			})
		})
	}
}

// suffer lives through one outage, and returns how long the worker took to work again.
func (s *stage) suffer(w *backstage.Worker, on *server, o outage, i int) time.Duration {
	s.t.Helper()
	before, during, after := fmt.Sprintf("before-%d", i), fmt.Sprintf("during-%d", i), fmt.Sprintf("after-%d", i)
	s.enqueue(job("q", before))
	s.untilWritten(time.Minute, "end", before, 1)
	s.untilHealth(w, true)
	if err := o.begin(s.t, on); err != nil {
		s.t.Fatal(err)
	}
	s.untilHealth(w, false)
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.provider.Stats.Queue(ctx, "q"); err == nil {
		s.t.Error("numbers of a broker that is away")
	}
	ctx, cancel = context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.client.Enqueue(ctx, s.caught(during)); err == nil {
		s.t.Error("a broker that is away stored a job")
	}
	if err := o.end(s.t, on); err != nil {
		s.t.Fatal(err)
	}
	back := time.Now()
	s.enqueueSoon(s.caught(during), job("q", after))
	s.untilWritten(resumes, "end", after, 1)
	took := time.Since(back)
	s.untilWritten(time.Minute, "end", during, 1)
	s.untilHealth(w, true)
	return took
}

// caught makes a job that is enqueued during an outage, and another of its key
// afterwards: whatever became of the first, its key must not be held by no job.
func (s *stage) caught(about string) backstage.Job {
	t := task("q", false)
	if s.provider.Claims != nil {
		t = untilDone("q")
	}
	return backstage.NewJob(t, wrapperspb.String(about))
}

// untilHealth waits until a worker is well, or says that it is not.
func (s *stage) untilHealth(w *backstage.Worker, well bool) {
	s.t.Helper()
	s.until(resumes, func() (bool, string) {
		err := w.Health(s.t.Context())
		return (err == nil) == well, fmt.Sprintf("health is %v", err)
	})
}

// enqueueSoon enqueues jobs again and again, as a client does whose broker is just
// coming back.
func (s *stage) enqueueSoon(jobs ...backstage.Job) {
	s.t.Helper()
	s.until(resumes, func() (bool, string) {
		_, err := s.client.Enqueue(s.t.Context(), jobs...)
		return err == nil, fmt.Sprint(err)
	})
}

func TestConnectionsThatAreCutAreMadeAnew(t *testing.T) {
	onEachServer(t, func(t *testing.T, s *stage, on *server) {
		w := s.worker("q", 4, s.lease(), deeds{s.ledger}.do)
		for i := range long(5, 50) {
			before, after := fmt.Sprintf("running-%d", i), fmt.Sprintf("after-%d", i)
			s.enqueueSoon(job("q", before+" sleep 300ms"))
			s.untilWritten(time.Minute, "start", before, 1)
			on.proxy.Cut()
			s.enqueueSoon(job("q", after))
			s.untilWritten(resumes, "end", after, 1)
		}
		s.untilQuiet(time.Minute)
		s.untilHealth(w, true)
		s.checkNoneIsDead()
	})
}

func TestJobsInFlightAreFoundWhenBrokerAndWorkerDiedTogether(t *testing.T) {
	onEachServer(t, func(t *testing.T, s *stage, on *server) {
		jobs, subjects := numbered(20, "q", "n", "hang")
		s.enqueue(jobs...)
		first := start(t, s.mortal("q", 20))
		s.until(time.Minute, func() (bool, string) {
			return len(s.ledger.read(t, "start")) == 20, "not all are in flight"
		})
		on.proxy.Blackhole() // no heartbeat any more
		first.kill()
		if err := on.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := on.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		on.proxy.Cut()
		on.proxy.Resume()
		start(t, s.mortal("q", 20))
		s.until(s.takeover(), func() (bool, string) {
			n := len(s.ledger.read(t, "end"))
			return n == 20, fmt.Sprintf("%d of 20 ended", n)
		})
		s.checkEnds(1, 1, subjects...)
	})
}

package embedded

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// waitingReceiver lets a worker wait for queue q, and returns where its first
// delivery is told.
func waitingReceiver(t *testing.T, s *store) <-chan string {
	t.Helper()
	sub := subscribe(t, s)
	came := make(chan string, 1)
	go func() {
		if got, err := sub.Receive(t.Context(), []string{"q"}, 1); err == nil {
			came <- got[0].Job().ID
		}
	}()
	waitFor(t, "the receiver", func() bool {
		return s.calls.Inside() == 1
	})
	return came
}

// TestRescuedBatchWakesReceivers has a batch that fails, with a receiver that waits
// and a job for it: in each way in which a batch is saved, the receiver gets it.
func TestRescuedBatchWakesReceivers(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *store){
		"one by one": func(s *store) {
			_ = s.do(t.Context(), func(t *transaction) error { t.exec("insert into scope (name) values (null)"); return nil })
		},
		"from a full disk": func(s *store) {
			s.delays.Hold(t.Context(), []provider.Job{job("huge", delayed(time.Hour), func(j *provider.Job) { j.Payload = make([]byte, 1<<20) })})
		},
	} {
		eitherWay(t, name, func(t *testing.T, point string) {
			hold, entered, armed := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
			first := holdAt(point, hold, entered)
			s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{maxPages: 100, hook: func(p string) {
				select {
				case <-armed:
					first(p)
				default:
				}
			}})
			came := waitingReceiver(t, s)
			if err := s.do(t.Context(), func(t *transaction) error { t.w.changedElsewhere(); return nil }); err != nil {
				t.Fatal(err) // the writer has looked, and the receiver stands by
			}
			close(armed)
			go s.Publish(t.Context(), []provider.Job{job("also", onQueue("other"))}, provider.PublishOptions{})
			<-entered
			go spoil(s)
			go s.Publish(t.Context(), []provider.Job{job("a")}, provider.PublishOptions{})
			waitFor(t, "both to wait", func() bool {
				s.writer.mu.Lock()
				defer s.writer.mu.Unlock()
				return len(s.writer.waiting) == 2
			})
			close(hold)
			select {
			case id := <-came:
				if id != "a" {
					t.Errorf("received %s; want a", id)
				}
			case <-time.After(10 * time.Second):
				t.Error("a job is ready, and the receiver that waits for it sleeps")
			}
		})
	}
}

// TestPromotionServesAllWhoWait has two receivers in one transaction in which a job
// for the first becomes due, because nobody else promotes.
func TestPromotionServesAllWhoWait(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	publish(t, s, job("a", delayed(time.Second)))
	s.provider.Delays, _ = openNew(t, Config{}).provider.Lend("x")
	first, second := subscribe(t, s), subscribeFor(t, s, testLease, "other")
	waitFor(t, "the job to be due", func() bool { return s.writerFindsDue(t) })
	b := new(batch)
	for _, sub := range []*subscription{first, second} {
		for _, q := range sub.lanes {
			b.receptions = append(b.receptions, newReception(sub, []int64{q}, 1))
		}
	}
	b.receptions[0].sweep = false
	if err := s.do(t.Context(), func(t *transaction) error {
		b.apply(t)
		b.start(t)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := b.receptions[0].got.list; len(got) != 1 {
		t.Errorf("the first receiver got %d jobs; want the one that became ready", len(got))
	}
}

// writerFindsDue reports whether a job of the file's own is due.
func (s *store) writerFindsDue(t *testing.T) bool {
	t.Helper()
	var found bool
	_, err := s.readRow(t.Context(), "select count(*) > 0 from held where due <= ?", []any{s.in.now()}, &found)
	return err == nil && found
}

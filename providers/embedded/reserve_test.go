package embedded

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// TestReservationsOfAKeyTakeTurns walks through the life of two jobs of a key.
func TestReservationsOfAKeyTakeTurns(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{PromotionLease: time.Hour})
	lent, _ := s.provider.Lend("b")
	d := lent.(*delays)
	for _, r := range lent.Hold(t.Context(), []provider.Job{job("a", keyed("k")), job("b", keyed("k")), job("c")}) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	reserve := func(want ...string) reservation {
		t.Helper()
		r, err := d.reserve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range r.jobs {
			got = append(got, j.ID)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("reserved %q; want %q", got, want)
		}
		return r
	}
	first := reserve("a", "c")
	if r := reserve(); r.next < s.in.now() || r.next == forever {
		t.Errorf("look again at %d; want the end of the reservation", r.next)
	}
	refused := []provider.Stored{{Outcome: provider.OutcomeRefused}, {Outcome: provider.OutcomeStored}}
	if err := d.conclude(t.Context(), first, refused); err != nil {
		t.Fatal(err)
	}
	reserve() // b does not pass a
	if found, err := lent.Cancel(t.Context(), "a"); err != nil || len(found) != 1 {
		t.Errorf("cancelling what was refused: %v, %v; want it found", found, err)
	}
	reserve("b")
}

// TestCallsThatLeaveReadNothing ends a call while its transaction is under way: what
// the writer found for it is not read any more. The race detector sees it.
func TestCallsThatLeaveReadNothing(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(ctx context.Context, s *store) error{
		"reserve": func(ctx context.Context, s *store) error {
			_, err := s.delays.reserve(ctx)
			return err
		},
		"cancel": func(ctx context.Context, s *store) error {
			_, err := s.delays.Cancel(ctx, "a")
			return err
		},
		"promote": func(ctx context.Context, s *store) error {
			_, err := s.delays.promoteSome(ctx, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, armed := make(chan struct{}), make(chan struct{})
			var once sync.Once
			s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{hook: func(p string) {
				select {
				case <-armed:
				default:
					return
				}
				if p == "begun" {
					once.Do(func() {
						close(entered)
						time.Sleep(2 * patience) // nothing tells the call when it is over
					})
				}
			}})
			publish(t, s, job("a", delayed(time.Millisecond)))
			waitFor(t, "the job to be due", func() bool { return s.writerFindsDue(t) })
			close(armed)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- call(ctx, s) }()
			<-entered
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v; want that its context ended", err)
			}
		})
	}
}

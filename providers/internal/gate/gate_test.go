package gate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCloseWaitsForThoseInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		if !g.Enter() {
			t.Fatal("an open gate lets nobody in")
		}
		within, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Close(within); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close while somebody is inside: %v; want its context's error", err)
		}
		if g.Enter() || g.Inside() != 1 {
			t.Errorf("a gate that is closed lets in; %d inside", g.Inside())
		}
		time.AfterFunc(time.Minute, g.Leave)
		if err := g.Close(t.Context()); err != nil || g.Inside() != 0 {
			t.Errorf("Close again: %v, %d inside", err, g.Inside())
		}
	})
}

// TestAnEmptyGateCloses whatever becomes of the context: select would choose at random.
func TestAnEmptyGateCloses(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		var g Gate
		if err := g.Close(over); err != nil {
			t.Fatalf("Close of an empty gate: %v", err)
		}
	}
}

package providertest

import (
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestMemory runs the suite on the provider that has the whole contract, so that
// the suite's own mistakes show here. Each check is in a bubble where time is
// simulated.
func TestMemory(t *testing.T) { Run(t, inMemory) }

// TestMemoryInRealTime runs it with the clock of the machine, where goroutines
// meet in other ways.
func TestMemoryInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases and delays")
	}
	t.Parallel()
	Run(t, func(t *testing.T) Harness {
		h := inMemory(t)
		h.Simulated = false
		return h
	})
}

func inMemory(*testing.T) Harness {
	store, lender := memory.NewStore(), memory.NewStore()
	open := func(s *memory.Store) func() (*provider.Provider, error) {
		return func() (*provider.Provider, error) {
			return memory.Open(memory.Config{Store: s, PromotionLease: 5 * time.Second})
		}
	}
	return Harness{
		Open:   open(store),
		Lender: open(lender),
		Lease:  time.Second,
		Drop:   func(p *provider.Provider) { store.Drop(p) },
		Bound: func(queue string, n int) error {
			_, err := memory.Open(memory.Config{Store: store, Bounds: map[string]int{queue: n}})
			return err
		},
		Garbage: func(queue string, b []byte) error {
			store.Put(queue, b)
			return nil
		},
		Simulated: true,
	}
}

package memory_test

import (
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/backstage-go/backstage/runtime/provider/providertest"
)

// TestProvider holds the package to the whole contract, in simulated time.
func TestProvider(t *testing.T) {
	t.Parallel()
	providertest.Run(t, harness)
}

func harness(*testing.T) providertest.Harness {
	store, lender := memory.NewStore(), memory.NewStore()
	open := func(s *memory.Store) func() (*provider.Provider, error) {
		return func() (*provider.Provider, error) { return memory.Open(memory.Config{Store: s}) }
	}
	return providertest.Harness{
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

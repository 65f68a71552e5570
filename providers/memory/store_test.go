package memory_test

import (
	"testing"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestZeroStoreIsEmpty(t *testing.T) {
	t.Parallel()
	var put, opened, dropped memory.Store
	put.Put("q", []byte("no record"))
	if dropped.Drop(nil) {
		t.Error("an empty store had a provider to drop")
	}
	p, err := memory.Open(memory.Config{Store: &opened})
	if err != nil {
		t.Fatal(err)
	}
	j := provider.Job{ID: "a", Task: "t", Queue: "q"}
	if s := p.Jobs.Publish(t.Context(), []provider.Job{j}, provider.PublishOptions{})[0]; s.Outcome != provider.OutcomeStored {
		t.Errorf("publishing: %v, %v; want stored", s.Outcome, s.Err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

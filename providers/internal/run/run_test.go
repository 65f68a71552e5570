package run

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func TestTheFirstSettlementFixesItsKind(t *testing.T) {
	var r Run
	if err := r.Begin(t.Context(), Ack); err != nil || r.State() != UnderWay {
		t.Fatalf("the first settlement: %v, state %d", err, r.State())
	}
	if err := r.Begin(t.Context(), Retry); !errors.Is(err, provider.ErrSettled) {
		t.Errorf("another kind while it is under way: %v; want ErrSettled", err)
	}
	failed := errors.New("not now")
	if err := r.End(failed); !errors.Is(err, failed) || r.State() != Open {
		t.Errorf("a settlement that failed: %v, state %d; want its error, and the run open", err, r.State())
	}
	if err := r.Begin(t.Context(), Dead); !errors.Is(err, provider.ErrSettled) {
		t.Errorf("another kind after it failed: %v; want ErrSettled", err)
	}
	if err := errors.Join(r.Begin(t.Context(), Ack), r.End(nil)); err != nil || r.State() != Settled {
		t.Errorf("the same kind again: %v, state %d", err, r.State())
	}
	if err := r.Begin(t.Context(), Ack); !errors.Is(err, provider.ErrSettled) {
		t.Errorf("the same kind once it is settled: %v; want ErrSettled", err)
	}
}

func TestWhatIsLostSaysWhatWasStored(t *testing.T) {
	var r Run
	if err := r.Begin(t.Context(), Dead); err != nil {
		t.Fatal(err)
	}
	var ids []string
	store := func(id string) (provider.Outcome, error) {
		ids = append(ids, id)
		if len(ids) == 1 {
			return provider.OutcomeRefused, errors.New("not now")
		}
		return provider.OutcomeStored, nil
	}
	if err := r.CarryLetter(store); err == nil {
		t.Error("a letter that was refused is no error")
	}
	if err := errors.Join(r.CarryLetter(store), r.CarryLetter(store)); err != nil || len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("further tries: %v, ids %q; want one more, under the same id", err, ids)
	}
	var lost *provider.LostError
	if err := r.End(provider.ErrLeaseLost); !errors.As(err, &lost) || lost.Stored != provider.OutcomeStored || r.State() != Lost {
		t.Errorf("lost: %v, state %d; want a LostError that says that it is stored", err, r.State())
	}
	if err := r.Begin(t.Context(), Dead); !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("once more: %v; want the lease lost", err)
	}
}

func TestTheSameKindWaitsForTheOneUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Run
		if err := r.Begin(t.Context(), Ack); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { _ = r.End(nil) })
		began := time.Now()
		if err := r.Begin(t.Context(), Ack); !errors.Is(err, provider.ErrSettled) || time.Since(began) != time.Minute {
			t.Errorf("a second call: %v after %v; want ErrSettled when the first has ended", err, time.Since(began))
		}
	})
}

package backstagetest_test

import (
	"errors"
	"strings"
	"testing"

	ordersv1 "github.com/backstage-go/backstage/golden/shop/orders/v1"
	"github.com/backstage-go/backstage/golden/shop/orders/v1/ordertasks"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/backstagetest"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestARecorderRefusesABatchAsAClientDoes(t *testing.T) {
	t.Parallel()
	var recorder backstagetest.Recorder
	receipts, err := recorder.Enqueue(t.Context(),
		ordertasks.SendReceiptJob(&ordersv1.SendReceiptRequest{OrderId: "A-1"}),
		ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{}),
		ordertasks.SendReceiptJob(&ordersv1.SendReceiptRequest{OrderId: strings.Repeat("x", 2<<20)}))
	var empty *backstage.EmptyKeyError
	var large *backstage.TooLargeError
	if !errors.As(err, &empty) || !errors.As(err, &large) {
		t.Errorf("err = %v, want both the empty key and the large payload", err)
	}
	for i, receipt := range receipts {
		if receipt.Outcome != backstage.Refused || receipt.Err == nil {
			t.Errorf("receipt %d = %+v, want it refused", i, receipt)
		}
	}
	if jobs := recorder.Jobs(); len(jobs) != 0 {
		t.Errorf("%d jobs of a refused batch are recorded", len(jobs))
	}
}

func TestARecorderCanSayThatAnOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	var recorder backstagetest.Recorder
	recorder.Answer(func(job backstage.Job) (backstage.Receipt, error) {
		return backstage.Receipt{}, &backstage.EnqueueError{ID: job.ID(), Task: job.Task(), Outcome: backstage.Unknown, Err: errors.New("cut off")}
	})
	job := ordertasks.SendReceiptJob(&ordersv1.SendReceiptRequest{OrderId: "A-1"})
	receipt, err := backstage.Enqueue(t.Context(), &recorder, job)
	var failed *backstage.EnqueueError
	if !errors.As(err, &failed) || failed.Outcome != backstage.Unknown || receipt.Outcome != backstage.Unknown || receipt.ID != job.ID() {
		t.Errorf("receipt %+v, err %v; want an unknown outcome with the id to try again with", receipt, err)
	}
}

// TestAnAnswerMayLookAtWhatWasRecorded is how a test says that the second of two jobs is a
// duplicate.
func TestAnAnswerMayLookAtWhatWasRecorded(t *testing.T) {
	t.Parallel()
	var recorder backstagetest.Recorder
	recorder.Answer(func(job backstage.Job) (backstage.Receipt, error) {
		return backstage.Receipt{ID: job.ID(), Outcome: backstage.Stored, Duplicate: len(recorder.Jobs()) > 0}, nil
	})
	task := backstage.Task[*wrapperspb.StringValue]{Name: "a"}
	for i, want := range []bool{false, true} {
		receipts, err := recorder.Enqueue(t.Context(), backstage.NewJob(task, wrapperspb.String("x")))
		if err != nil || receipts[0].Duplicate != want {
			t.Errorf("job %d: duplicate %v, %v; want %v", i, receipts[0].Duplicate, err, want)
		}
	}
}

package backstagetest

import (
	"time"

	"github.com/backstage-go/backstage/runtime"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// Diff compares jobs by what a reader of a test cares for: task, queue, payload,
// delay and keys, but not ids, which are random. It returns go-cmp's report,
// with - for what was wanted and + for what was there, or an empty string.
//
//	want := []backstage.Job{ordertasks.SendReceiptJob(&ordersv1.SendReceiptRequest{OrderId: "A-1"})}
//	if diff := backstagetest.Diff(want, recorder.Jobs()); diff != "" { … }
//
// Delays are compared to the nearest second, because At counts from now.
func Diff(want, got []backstage.Job) string {
	return cmp.Diff(views(want), views(got), protocmp.Transform())
}

// view is what is compared of a job.
type view struct {
	Task, Queue            string
	Payload                proto.Message
	Delay                  time.Duration
	DedupeKey, OrderingKey string
	Invalid                string
}

func views(jobs []backstage.Job) []view {
	list := make([]view, len(jobs))
	for i, job := range jobs {
		list[i] = view{
			Task:        job.Task(),
			Queue:       job.Queue(),
			Payload:     job.Message(),
			Delay:       job.Delay().Round(time.Second),
			DedupeKey:   job.DedupeKey(),
			OrderingKey: job.OrderingKey(),
		}
		if err := job.Err(); err != nil {
			list[i].Invalid = err.Error()
		}
	}
	return list
}

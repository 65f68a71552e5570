package backstagetest

import (
	"fmt"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
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
// Delays are compared exactly, times given by At to within a second, because code
// that adds to time.Now does not meet a nanosecond twice.
func Diff(want, got []backstage.Job) string {
	return cmp.Diff(views(want), views(got), protocmp.Transform(), cmp.Comparer(wait.equal))
}

// wait is how long a job waits, or until when.
type wait struct {
	delay time.Duration
	at    time.Time
}

func (w wait) equal(other wait) bool {
	if w.at.IsZero() && other.at.IsZero() {
		return w.delay == other.delay
	}
	return (w.delay - other.delay).Abs() < time.Second
}

// String returns the option that gives a job its wait.
func (w wait) String() string {
	if w.at.IsZero() {
		return fmt.Sprintf("In(%v)", w.delay)
	}
	return fmt.Sprintf("At(%v)", w.at)
}

// view is what is compared of a job.
type view struct {
	Task, Queue            string
	Payload                proto.Message
	Wait                   wait
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
			Wait:        wait{job.Delay(), job.At()},
			DedupeKey:   job.DedupeKey(),
			OrderingKey: job.OrderingKey(),
		}
		if err := job.Err(); err != nil {
			list[i].Invalid = err.Error()
		}
	}
	return list
}

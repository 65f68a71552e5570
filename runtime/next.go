package backstage

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Next records the jobs that follow when a handler succeeds. Generated code
// defines a type over it for each task, with one method per declared edge and no
// other. It is valid until the handler returns, and not for concurrent use. The
// zero value is ready for use, in tests.
type Next struct{ recorded *recorded }

// recorded are the next jobs that a handler has asked for.
type recorded struct {
	jobs []Job
	err  error // the first next job that cannot be made
}

// Add records a next job. Generated code calls it; edge names the declared edge,
// such as "ChargeCard.SendReceipt".
func Add[M proto.Message](next *Next, task Task[M], edge string, in M, opts ...EdgeOption) {
	if next.recorded == nil {
		next.recorded = new(recorded)
	}
	m := newMaking(task, in)
	for _, option := range opts {
		if err := option.enqueue(m); err != nil {
			m.fail(err)
		}
	}
	m.job.Edge = edge
	next.recorded.jobs = append(next.recorded.jobs, Job{m})
	if err := m.err(); err != nil && next.recorded.err == nil {
		next.recorded.err = fmt.Errorf("edge %s: %w", edge, err)
	}
}

// Taken returns the next jobs that a handler recorded, in order, for tests. They
// have no id yet: it depends on the job that was run.
func Taken[N ~struct{ recorded *recorded }](next *N) []Job {
	r := struct{ recorded *recorded }(*next).recorded
	if r == nil {
		return nil
	}
	return r.jobs
}

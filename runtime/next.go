package backstage

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Next records the jobs that follow when a handler succeeds. Generated code
// defines a type over it for each task, with one method per declared edge and no
// other. It is valid until the handler returns, and not for concurrent use. The
// zero value is ready for use, in tests.
type Next struct{ steps *steps }

type steps struct {
	jobs []Job
	err  error // the first next job that cannot be made
}

// Add records a next job. Generated code calls it; edge names the declared step,
// such as "ChargeCard.SendReceipt".
func Add[M proto.Message](next *Next, task Task[M], edge string, in M, opts ...EdgeOption) {
	if next.steps == nil {
		next.steps = new(steps)
	}
	m := newMaking(task, in)
	for _, option := range opts {
		if err := option.enqueue(m); err != nil {
			m.fail(err)
		}
	}
	m.job.Edge = edge
	next.steps.jobs = append(next.steps.jobs, Job{m})
	if err := m.err(); err != nil && next.steps.err == nil {
		next.steps.err = fmt.Errorf("edge %s: %w", edge, err)
	}
}

// Taken returns the next jobs that a handler recorded, in order, for tests. They
// have no id yet: it depends on the job that was run.
func Taken[N ~struct{ steps *steps }](next *N) []Job {
	s := struct{ steps *steps }(*next).steps
	if s == nil {
		return nil
	}
	return s.jobs
}

// childID returns the id of a next job: the same for the same step of the same
// job with the same payload, however often the parent runs.
func childID(parent, task string, payload []byte, ordinal int32) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(parent), []byte(task), payload} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(ordinal))
	h.Write(n[:])
	return base32.StdEncoding.EncodeToString(h.Sum(nil))[:26]
}

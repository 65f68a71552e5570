package backstage

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// children makes the next jobs of a run that is done. An error says which edge
// cannot be taken.
func (s *shift) children(e *execution) ([]provider.Job, error) {
	recorded := e.run.next.recorded
	if recorded == nil {
		return nil, nil
	}
	if recorded.err != nil {
		return nil, recorded.err
	}
	now := time.Now()
	equal := make(map[string]int32)
	next := recorded.jobs // read once: what a goroutine that outlives its handler adds must not end the process
	jobs := make([]provider.Job, len(next))
	for i, child := range next {
		job := &jobs[i]
		child.made.stamped(job, now)
		if size := len(job.Payload); size > s.cfg.PayloadLimit {
			return nil, fmt.Errorf("edge %s: %w", job.Edge, &TooLargeError{Task: job.Task, Size: size, Limit: s.cfg.PayloadLimit})
		}
		need := child.made.needs
		need.Delay = job.Delay > 0
		if err := errors.Join(append(s.broker.check(need), s.broker.tooLong(need, job.Delay))...); err != nil {
			return nil, fmt.Errorf("edge %s: %w", job.Edge, err)
		}
		job.ID = childID(e.job.ID, job.Task, job.Payload, 0)
		if job.Ordinal = equal[job.ID]; job.Ordinal > 0 {
			equal[job.ID]++
			job.ID = childID(e.job.ID, job.Task, job.Payload, job.Ordinal)
		} else {
			equal[job.ID] = 1
		}
		job.Parent, job.Root = e.job.ID, cmp.Or(e.job.Root, e.job.ID)
		job.Correlation, job.Trace = e.job.Correlation, e.job.Trace
		job.Actor, job.Tenant = e.job.Actor, e.job.Tenant
	}
	return jobs, nil
}

// childID returns the id of a next job: the same for the same edge of the same
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

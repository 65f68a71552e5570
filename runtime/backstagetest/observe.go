package backstagetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// observe keeps what happens, and which jobs are sent by it.
func (h *Harness) observe(event backstage.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
	switch event := event.(type) {
	case backstage.WorkerStarted:
		h.served = event.Queues
	case backstage.JobEnqueued:
		if event.Receipt.Outcome == backstage.Stored {
			h.sent = append(h.sent, event.Job)
		}
	case backstage.JobSettled:
		if event.Settlement == backstage.Acked {
			h.sent = append(h.sent, h.next[event.Job.ID]...)
		}
		delete(h.next, event.Job.ID)
	}
}

// noteNext notes which next jobs a run has chosen.
func (h *Harness) noteNext(next backstage.HandleFunc) backstage.HandleFunc {
	return func(ctx context.Context, run *backstage.Run) error {
		err := next(ctx, run)
		if err == nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.next[run.Info().ID] = run.Next()
		}
		return err
	}
}

// left says what is not quiet in the queues of the worker. The error says why it
// never will be.
func (h *Harness) left() (string, error) {
	select {
	case <-h.ended:
		err := h.err
		h.err = nil // it is told here
		if err == nil {
			err = errors.New("it has been stopped")
		}
		return "", fmt.Errorf("the worker does not run: %w", err)
	default:
	}
	h.mu.Lock()
	served := h.served
	h.mu.Unlock()
	if served == nil {
		return "the worker has not started", nil
	}
	var busy []string
	for _, queue := range served {
		ready, running, err := h.numbers(queue)
		if err != nil {
			return "", err
		}
		if ready+running > 0 {
			busy = append(busy, fmt.Sprintf("queue %q has %d ready and %d running", queue, ready, running))
		}
	}
	if len(busy) > 0 {
		busy = append(busy, h.running()...)
	}
	return strings.Join(busy, ", "), nil
}

func (h *Harness) numbers(queue string) (ready, running int64, err error) {
	stats, err := h.Provider.Stats.Queue(h.t.Context(), queue)
	ready, _ = stats.Depth.Get()
	running, _ = stats.InFlight.Get()
	return ready, running, err
}

// running names the jobs whose handlers have not returned.
func (h *Harness) running() []string {
	jobs := make(map[string]backstage.Info)
	for _, event := range h.Events() {
		switch event := event.(type) {
		case backstage.RunStarted:
			jobs[event.Job.ID] = event.Job
		case backstage.RunEnded:
			delete(jobs, event.Job.ID)
		}
	}
	var names []string
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		names = append(names, fmt.Sprintf("the handler of %s has not returned (job %s)", jobs[id].Task, id))
	}
	return names
}

// unknown names the tasks of jobs that the worker got and could only park.
func (h *Harness) unknown() string {
	queues := make(map[string]string) // by task
	for _, event := range h.Events() {
		switch event := event.(type) {
		case backstage.JobSettled:
			// A job whose worker had died may be parked although its task is known.
			if event.Why == provider.ParkedAgain && event.Job.Crashes == 0 {
				queues[event.Job.Task] = event.Job.Queue
			}
		case backstage.RunStarted:
			delete(queues, event.Job.Task)
		}
	}
	var names []string
	for _, task := range slices.Sorted(maps.Keys(queues)) {
		names = append(names, fmt.Sprintf("task %s, which waits in queue %q", task, queues[task]))
	}
	return strings.Join(names, ", and ")
}

// tellOthers logs what waits in queues that the worker does not serve: whoever
// looks for an effect that a test lacks should see that.
func (h *Harness) tellOthers() {
	h.t.Helper()
	counts := make(map[string]int)
	h.mu.Lock()
	for _, job := range h.sent {
		if !slices.Contains(h.served, job.Queue()) {
			counts[fmt.Sprintf("%s in queue %q", job.Task(), job.Queue())]++
		}
	}
	h.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%d of %s", counts[what], what))
	}
	if text := strings.Join(lines, ", "); text != h.told {
		h.told = text
		h.t.Logf("backstagetest: jobs for others, which nobody here runs: %s", text)
	}
}

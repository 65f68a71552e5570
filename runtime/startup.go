package backstage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/runtime/provider"
)

// check returns all that is wrong with a worker's configuration.
func (c *WorkerConfig) check() error {
	var wrong []error
	for _, field := range []struct {
		name     string
		negative bool
	}{
		{"Concurrency", c.Concurrency < 0},
		{"Lease", c.Lease < 0},
		{"ShutdownGrace", c.ShutdownGrace < 0},
		{"PayloadLimit", c.PayloadLimit < 0},
	} {
		if field.negative {
			wrong = append(wrong, fmt.Errorf("%s must not be negative", field.name))
		}
	}
	if c.Concurrency > MaxConcurrency {
		wrong = append(wrong, fmt.Errorf("%s is %d, and may be at most %d", "Concurrency", c.Concurrency, MaxConcurrency))
	}
	if c.StrictPriority && len(c.Queues) == 0 {
		wrong = append(wrong, errors.New("StrictPriority needs Queues, in the order in which they are served"))
	}
	seen := make(map[string]bool)
	for i, q := range c.Queues {
		at := fmt.Sprintf("Queues[%d]", i)
		if err := checkName("Name", q.Name); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", at, err))
		}
		if q.Weight < 0 {
			wrong = append(wrong, fmt.Errorf("%s: Weight must not be negative", at))
		}
		if seen[q.Name] {
			wrong = append(wrong, fmt.Errorf("%s: queue %q is named twice", at, q.Name))
		}
		seen[q.Name] = true
	}
	return errors.Join(wrong...)
}

// check returns what a shift needs, or everything that is wrong with the
// registrations and all that the provider lacks for them, joined.
func (w *Worker) check() (map[string]*registered, laneSet, error) {
	byName, err := w.byName()
	lanes, laneErr := w.laneSet()
	return byName, lanes, errors.Join(err, w.unrunnable(), laneErr, w.missing())
}

// byName returns the tasks by all names that they accept. Each name has one
// handler.
func (w *Worker) byName() (map[string]*registered, error) {
	byName := make(map[string]*registered)
	var wrong []error
	for _, r := range w.tasks {
		if byName[r.Name] != nil {
			wrong = append(wrong, fmt.Errorf("task %s is registered twice", r.Name))
			continue
		}
		byName[r.Name] = r
	}
	for _, r := range w.tasks {
		r.chain(w.cfg.Interceptors)
		if byName[r.Name] != r {
			continue // its aliases are taken by the first one, too
		}
		for _, alias := range r.Aliases {
			if earlier := byName[alias]; earlier != nil {
				wrong = append(wrong, fmt.Errorf("alias %q of task %s is also a name of task %s; a name has one handler", alias, r.Name, earlier.Name))
				continue
			}
			byName[alias] = r
		}
	}
	return byName, errors.Join(wrong...)
}

// unrunnable returns why registered tasks could not run: for want of a handler, or
// because this worker does not serve the queues in which their jobs wait.
func (w *Worker) unrunnable() error {
	var wrong []error
	for _, r := range w.tasks {
		if r.missing {
			wrong = append(wrong, fmt.Errorf("task %s: the handler is nil", r.Name))
		}
		for _, queue := range r.queues {
			if err := checkName("Serve", queue); err != nil {
				wrong = append(wrong, fmt.Errorf("task %s: %w", r.Name, err))
			}
		}
		if len(w.cfg.Queues) > 0 {
			wrong = append(wrong, w.unserved(r)...)
		}
	}
	return errors.Join(wrong...)
}

// unserved returns what is wrong with the queues of a task, where the worker names
// those that it serves.
func (w *Worker) unserved(r *registered) []error {
	served := func(name string) bool {
		return slices.ContainsFunc(w.cfg.Queues, func(q Queue) bool { return q.Name == name })
	}
	names := make([]string, len(w.cfg.Queues))
	for i, q := range w.cfg.Queues {
		names[i] = fmt.Sprintf("%q", q.Name)
	}
	list := strings.Join(names, ", ")

	var wrong []error
	if !slices.ContainsFunc(r.waitsIn(), served) {
		wrong = append(wrong, fmt.Errorf("task %s can never run: its queue %q is not among the worker's Queues (%s); "+
			"add it, or say with Serve in which of them its jobs wait", r.Name, r.Queue, list))
	}
	for _, queue := range r.queues {
		if !served(queue) {
			wrong = append(wrong, fmt.Errorf("task %s: Serve(%q): it is not among the worker's Queues (%s); add it", r.Name, queue, list))
		}
	}
	return wrong
}

// missing returns what the provider lacks for the registered tasks. Every worker
// needs to keep jobs for later, because it may meet a task that it does not know.
func (w *Worker) missing() error {
	var missing []error
	if w.broker.Delays == nil && w.broker.Jobs.Facts().Retries != provider.RetriesAll {
		for _, r := range w.tasks {
			missing = append(missing, &MissingError{Provider: w.broker.Name, Capability: "Delays",
				Need: "retries of task " + r.Name, Remedy: w.broker.lendRemedy()})
		}
	}
	for _, r := range w.tasks {
		for _, need := range r.Next {
			missing = append(missing, w.broker.check(need)...)
		}
	}
	return errors.Join(missing...)
}

// elsewhere returns the declared next tasks that this worker does not run itself,
// with their queues.
func (w *Worker) elsewhere(byName map[string]*registered) []string {
	var next []string
	for _, r := range w.tasks {
		for _, need := range r.Next {
			if byName[need.Task] == nil {
				next = append(next, fmt.Sprintf("%s (queue %q)", need.Task, cmp.Or(need.Queue, DefaultQueue)))
			}
		}
	}
	slices.Sort(next)
	return slices.Compact(next)
}

// chain puts the interceptors around the handler, the worker's outside.
func (r *registered) chain(outer []Interceptor) {
	r.call = r.handle
	for _, list := range [][]Interceptor{r.interceptors, outer} {
		for i := len(list) - 1; i >= 0; i-- {
			r.call = list[i](r.call)
		}
	}
}

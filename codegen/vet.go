package codegen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Vet returns what is allowed and generates, but probably is not what was
// meant: policies that contradict each other, chains into deprecated tasks, keys
// that show secrets, queues that differ only in how they are spelled. All are
// warnings, and all are about services to generate.
func (p *Program) Vet() Diagnostics {
	v := &vetter{queues: map[string]*Task{}}
	for _, t := range p.Tasks() {
		if !t.Service.Generate {
			continue
		}
		v.task = t
		v.retries()
		v.window()
		v.chain()
		v.secrets(t.Dedupe, "dedupe")
		v.secrets(t.Ordering, "ordering_key")
		v.spelling()
	}
	v.found.Sort()
	return v.found
}

type vetter struct {
	task   *Task
	queues map[string]*Task // by how they are read: lower case, one separator
	found  Diagnostics
}

// warn warns about an option of the task: where the task sets it, else where its
// service does, else at the task's name.
func (v *vetter) warn(name protoreflect.Name, format string, args ...any) {
	v.found = append(v.found, v.complaint(name, format, args...).at(Warning, v.place(name)))
}

func (v *vetter) complaint(name protoreflect.Name, format string, args ...any) complaint {
	return complaint{message: fmt.Sprintf("task %s: %s: %s", v.task.FullName.Name(), name, fmt.Sprintf(format, args...))}
}

func (v *vetter) place(name protoreflect.Name) Position {
	s := v.task.Service
	if o := taskOptionSet(s.File, v.task.desc); o.wrote(name) {
		return o.at(name)
	}
	if o := serviceOptionSet(s.File, s.desc); o.wrote(name) {
		return o.at(name)
	}
	return v.task.Pos
}

// retries looks for retries that are written and never happen.
func (v *vetter) retries() {
	p := v.task.Policy
	if p.MaxAttempts.Value == 1 {
		if p.Backoff.From == FromTask {
			v.warn("backoff", "there is no retry that could wait: max_attempts is 1")
		}
		return
	}
	if p.MaxAge.Value <= p.Timeout.Value {
		v.warn("max_age", "after %s there is no retry, and one attempt may take as long (timeout %s)",
			formatDuration(p.MaxAge.Value), formatDuration(p.Timeout.Value))
		return
	}
	if wait := p.Backoff.Value.average(int(p.MaxAttempts.Value)-1, p.MaxAge.Value); wait > p.MaxAge.Value {
		v.warn("max_age", "the waits between %d attempts add up to more than the %s within which there are retries",
			p.MaxAttempts.Value, formatDuration(p.MaxAge.Value))
	}
}

// average returns how long a number of retries wait in all, on average and with
// full jitter. It stops counting beyond a limit.
func (b Backoff) average(retries int, limit time.Duration) time.Duration {
	var sum time.Duration
	wait := b.Min
	for range retries {
		if b.Min == b.Max {
			sum += wait // a constant wait has no jitter
		} else {
			sum += wait / 2
		}
		if sum > limit || sum < 0 {
			return limit + 1
		}
		if wait < b.Max {
			wait = min(2*wait, b.Max)
		}
	}
	return sum
}

// window looks for dedupe keys that are free again before their job is due.
func (v *vetter) window() {
	p := v.task.Policy
	if v.task.Dedupe == nil || p.DedupeFor.Value.UntilDone || p.DedupeFor.Value.For > p.Delay.Value {
		return
	}
	v.warn("dedupe_for", "the key is free again after %s, when a job has not started yet (delay %s)",
		formatDuration(p.DedupeFor.Value.For), formatDuration(p.Delay.Value))
}

// chain looks for edges into tasks that are going away.
func (v *vetter) chain() {
	for _, e := range v.task.Edges {
		if !e.Target.Deprecated && !e.Target.Service.Deprecated || v.task.Deprecated || v.task.Service.Deprecated {
			continue
		}
		v.found = append(v.found, v.complaint("then", "%s is deprecated", e.Target.FullName).at(Warning, e.Pos))
	}
}

// secrets looks for keys that are made of what must not be shown.
func (v *vetter) secrets(key *Key, name protoreflect.Name) {
	if key == nil {
		return
	}
	for _, part := range key.Parts {
		for _, f := range part.Fields {
			if f.Desc.Options().(*descriptorpb.FieldOptions).GetDebugRedact() {
				v.warn(name, "field %q is marked debug_redact, and keys are stored and shown as they are", f.Desc.FullName())
				v.found[len(v.found)-1].Near = string(f.Desc.Name())
			}
		}
	}
}

// spelling looks for queues whose names people read as one.
func (v *vetter) spelling() {
	queue := v.task.Policy.Queue.Value
	read := strings.ToLower(strings.Map(func(r rune) rune {
		if slices.Contains([]rune("-_./: "), r) {
			return '-'
		}
		return r
	}, queue))
	other := v.queues[read]
	if other == nil {
		v.queues[read] = v.task
		return
	}
	if have := other.Policy.Queue.Value; have != queue {
		v.warn("queue", "%q and %q, of task %s, are two queues; is one meant?", queue, have, other.FullName)
	}
}

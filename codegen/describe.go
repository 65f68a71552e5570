package codegen

import (
	"strconv"
	"time"
)

// An Option is one value that holds for a task, as a schema would write it.
type Option struct {
	// Name is the option's: "max_attempts".
	Name string
	// Value is written as in a schema: "8", "30s", "1s..5m".
	Value string
	From  Origin
}

// Options returns what holds for the jobs of a task, in the order of the
// language's table. Delays, expiries and dedupe windows that are not set are
// left out.
func (p Policy) Options() []Option {
	out := []Option{{"queue", p.Queue.Value, p.Queue.From}}
	out = appendDuration(out, "delay", p.Delay)
	out = appendDuration(out, "expires", p.Expires)
	if p.DedupeFor.From != BuiltIn {
		out = append(out, Option{"dedupe_for", p.DedupeFor.Value.schema(), p.DedupeFor.From})
	}
	out = appendDuration(out, "timeout", p.Timeout)
	out = append(out,
		Option{"max_attempts", strconv.Itoa(int(p.MaxAttempts.Value)), p.MaxAttempts.From},
		Option{"backoff", p.Backoff.Value.schema(), p.Backoff.From})
	return appendDuration(out, "max_age", p.MaxAge)
}

func appendDuration(list []Option, name string, s Setting[time.Duration]) []Option {
	if s.Value == 0 {
		return list
	}
	return append(list, Option{name, formatDuration(s.Value), s.From})
}

// schema returns the window as a schema writes it.
func (w Window) schema() string {
	if w.UntilDone {
		return "done"
	}
	return formatDuration(w.For)
}

// schema returns the backoff as a schema writes it.
func (b Backoff) schema() string {
	if b.Min == b.Max {
		return formatDuration(b.Min)
	}
	return formatDuration(b.Min) + ".." + formatDuration(b.Max)
}

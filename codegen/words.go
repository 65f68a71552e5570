package codegen

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// RunWords says how a worker runs the task, for people who read its handler.
func (t *Task) RunWords() string {
	p := t.Policy
	words := fmt.Sprintf("Up to %d attempts of at most %s each, with %s.",
		p.MaxAttempts.Value, formatDuration(p.Timeout.Value), p.Backoff.Value)
	if p.MaxAttempts.Value == 1 {
		words = fmt.Sprintf("One attempt of at most %s.", formatDuration(p.Timeout.Value))
	}
	if p.MaxAge.From != BuiltIn {
		words += fmt.Sprintf(" No retry later than %s after it was first due.", formatDuration(p.MaxAge.Value))
	}
	if len(t.Edges) > 0 {
		names := make([]string, len(t.Edges))
		for i, e := range t.Edges {
			names[i] = e.GoName
		}
		words += fmt.Sprintf(" Then: %s.", strings.Join(names, ", "))
	}
	if t.Owner != "" {
		words += fmt.Sprintf(" Owner: %s.", oneLine(t.Owner))
	}
	return words
}

// MakeWords says what enqueueing does, for people who read the client.
func (t *Task) MakeWords() string {
	p := t.Policy
	words := fmt.Sprintf("It enqueues on queue %q.", p.Queue.Value)
	if p.Delay.Value != 0 {
		words += fmt.Sprintf(" A job waits %s before its first start.", formatDuration(p.Delay.Value))
	}
	if p.Expires.Value != 0 {
		words += fmt.Sprintf(" A job that has not started %s after it was due expires.", formatDuration(p.Expires.Value))
	}
	if t.Dedupe != nil {
		words += fmt.Sprintf(" Jobs with one dedupe key %q are one job %s.", t.Dedupe.Text, p.DedupeFor.Value)
	}
	if t.Ordering != nil {
		words += fmt.Sprintf(" Jobs of the queue with one ordering key %q start one at a time.", t.Ordering.Text)
	}
	return words
}

// String returns the window as it ends a sentence: "for 24h".
func (w Window) String() string {
	if w.UntilDone {
		return "until its outcome"
	}
	return "for " + formatDuration(w.For)
}

// String returns the backoff in words: "backoff from 1s to 5m".
func (b Backoff) String() string {
	if b.Min == b.Max {
		return "a backoff of " + formatDuration(b.Min)
	}
	return fmt.Sprintf("backoff from %s to %s", formatDuration(b.Min), formatDuration(b.Max))
}

// doc returns the schema's comment on the task, or what stands in for it.
func (t *Task) doc() string {
	text, _ := cutDeprecation(t.Comment)
	if text == "" {
		return fmt.Sprintf("%s is task %s.", t.GoName, t.FullName)
	}
	return text
}

// deprecation is the paragraph by which Go's tools know what is deprecated: that
// of the comment, else one that says that the schema's option says so.
func (t *Task) deprecation() string {
	return deprecation(t.Comment, t.Deprecated, t.FullName.Name())
}

func (s *Service) doc() string {
	text, _ := cutDeprecation(s.Comment)
	return text
}

func (s *Service) deprecation() string {
	return deprecation(s.Comment, s.Deprecated, s.FullName.Name())
}

func deprecation(comment string, deprecated bool, name protoreflect.Name) string {
	_, paragraph := cutDeprecation(comment)
	if paragraph == "" && deprecated {
		return fmt.Sprintf("Deprecated: the schema marks %s as deprecated.", name)
	}
	return paragraph
}

// cutDeprecation takes the paragraph that begins with Deprecated: out of a
// comment, because it goes last.
func cutDeprecation(comment string) (text, paragraph string) {
	var kept []string
	for p := range strings.SplitSeq(comment, "\n\n") {
		if strings.HasPrefix(p, "Deprecated: ") && paragraph == "" {
			paragraph = p
			continue
		}
		kept = append(kept, p)
	}
	return strings.Join(kept, "\n\n"), paragraph
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

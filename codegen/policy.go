package codegen

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// apply lays the options of a service or a task over what holds so far.
func (l *loader) apply(p *Policy, o optionSet) {
	serviceDelays := p.Delay.From == FromService
	setting(l, o, "queue", &p.Queue, parseQueue)
	setting(l, o, "delay", &p.Delay, func(s string) (time.Duration, error) { return parseDelay(s, serviceDelays) })
	setting(l, o, "expires", &p.Expires, parsePositive)
	setting(l, o, "dedupe_for", &p.DedupeFor, parseWindow)
	setting(l, o, "timeout", &p.Timeout, parsePositive)
	setting(l, o, "max_attempts", &p.MaxAttempts, parseAttempts)
	setting(l, o, "backoff", &p.Backoff, parseBackoff)
	setting(l, o, "max_age", &p.MaxAge, parsePositive)
}

func setting[T any](l *loader, o optionSet, name protoreflect.Name, into *Setting[T], parse func(string) (T, error)) {
	text, ok := o.text(name)
	if !ok {
		return
	}
	v, err := parse(text)
	if err != nil {
		l.reportOption(o, name, text, complaint{message: err.Error()})
		return
	}
	*into = Setting[T]{Value: v, From: o.from}
}

func parseQueue(s string) (string, error) {
	if strings.ContainsAny(s, "{}") {
		return "", fmt.Errorf("%q is no template: a queue is one name", s)
	}
	if bad := badName(s); bad != "" {
		return "", errors.New(bad)
	}
	return s, nil
}

// parseDelay takes zero where it takes back a delay of the service: there it
// means something.
func parseDelay(s string, serviceDelays bool) (time.Duration, error) {
	if d, err := parseDuration(s); err == nil && d == 0 && serviceDelays {
		return 0, nil
	}
	return parsePositive(s)
}

func parseWindow(s string) (Window, error) {
	if s == "done" {
		return Window{UntilDone: true}, nil
	}
	if !IsDuration(s) {
		return Window{}, fmt.Errorf("%q is no duration; write it like \"24h\" or \"7d\", or \"done\" for until the job's outcome", s)
	}
	d, err := parsePositive(s)
	return Window{For: d}, err
}

// mostAttempts is the runtime's limit.
const mostAttempts = 1_000_000

func parseAttempts(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, errors.New("an explicit zero means nothing; leave the option out for the default, or set 1 for no retry")
	case n < 0:
		return 0, fmt.Errorf("%d is negative", n)
	case n > mostAttempts:
		return 0, fmt.Errorf("%d is more than the runtime counts; at most %d", n, mostAttempts)
	}
	return int32(n), nil
}

// keys compiles the key templates of a task.
func (l *loader) keys(t *Task, o optionSet) {
	t.Dedupe = l.key(t, o, "dedupe")
	t.Ordering = l.key(t, o, "ordering_key")
	_, deduped := o.text("dedupe")
	if window, ok := o.text("dedupe_for"); ok && !deduped {
		l.reportOption(o, "dedupe_for", window, complaint{message: "there is no dedupe whose key it could hold"})
	}
	written := o.wrote("dedupe_for") || serviceOptionSet(t.Service.File, t.Service.desc).wrote("dedupe_for")
	if text, ok := o.text("dedupe"); ok && t.Policy.DedupeFor.From == BuiltIn && !written {
		l.reportOption(o, "dedupe", text, complaint{
			message: "it needs dedupe_for: how long does a key hold?",
			hint:    `dedupe_for: "24h", or "done" until the job's outcome`,
		})
	}
}

func (o optionSet) wrote(name protoreflect.Name) bool {
	_, ok := o.text(name)
	return ok
}

func (l *loader) key(t *Task, o optionSet, name protoreflect.Name) *Key {
	text, ok := o.text(name)
	if !ok {
		return nil
	}
	key, wrong, odd := resolveKey(text, t.Payload)
	for _, c := range wrong {
		l.reportOption(o, name, text, c)
	}
	for _, c := range odd {
		l.warn(o.at(name), o.complaint(name, text, c))
	}
	return key
}

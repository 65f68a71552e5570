package provider

import "sync"

// Kind is what happened to a provider.
type Kind string

// The kinds of events.
const (
	Disconnected       Kind = "disconnected"        // the broker cannot be reached
	Reconnected        Kind = "reconnected"         // it can be again
	Blocked            Kind = "blocked"             // the broker or the file takes no writes for now
	Unblocked          Kind = "unblocked"           // it takes them again
	GroupRecreated     Kind = "group re-created"    // a consumer group had vanished
	Ghost              Kind = "ghost"               // a delivery whose job is gone from the broker
	ForeignRecord      Kind = "foreign record"      // bytes that are no job, dead-lettered
	Paused             Kind = "paused"              // a lane is stopped by a bound of the provider's own
	Resumed            Kind = "resumed"             // and goes on
	RetentionOvertaken Kind = "retention overtaken" // the broker deleted jobs that were not settled
	Degraded           Kind = "degraded"            // something works less well than it should
)

// Event is one thing that happened to a provider.
type Event struct {
	// Provider is the provider's name.
	Provider string
	// Kind is what happened.
	Kind Kind
	// Queue is where, if it concerns one.
	Queue string
	// Count is how many, if it concerns several of something.
	Count int64
	// Message says more, in a sentence without a full stop.
	Message string
	// Err is the cause, if there is one.
	Err error
}

// Events passes what happens to a provider on to those who observe it. The zero
// value is ready for use.
type Events struct {
	mu        sync.Mutex
	observers map[int]func(Event)
	last      int
	early     []Event // for the first who observes
}

// Observe calls f for every event from now on, until cancel is called; the first
// who observes is also told of what EmitEarly has kept. f is called synchronously,
// perhaps by several goroutines at once, and must not block or call into the
// provider.
func (e *Events) Observe(f func(Event)) (cancel func()) {
	cancel, early := e.add(f)
	for _, event := range early {
		f(event)
	}
	return cancel
}

func (e *Events) add(f func(Event)) (cancel func(), early []Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.observers == nil {
		e.observers = make(map[int]func(Event))
	}
	e.last++
	key := e.last
	e.observers[key] = f
	early, e.early = e.early, nil
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.observers, key)
	}, early
}

// EmitEarly keeps an event for the first who observes. Only providers call it,
// while they are opened, because nobody can observe them before.
func (e *Events) EmitEarly(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.early = append(e.early, event)
}

// Emit reports an event. Only providers call it.
func (e *Events) Emit(event Event) {
	e.mu.Lock()
	observers := make([]func(Event), 0, len(e.observers))
	for _, f := range e.observers {
		observers = append(observers, f)
	}
	e.mu.Unlock()
	for _, f := range observers {
		f(event)
	}
}

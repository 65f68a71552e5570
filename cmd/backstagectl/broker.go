package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"time"

	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/runtime/provider"
)

const urlVariable = "BACKSTAGE_URL"

// A broker is where a command looks, and how long it waits for it.
type broker struct {
	world
	url     string
	timeout time.Duration
}

func (w world) brokerFlags(set *flag.FlagSet) *broker {
	b := &broker{world: w, url: w.getenv(urlVariable)}
	set.Func("url", "the broker's `address`, such as embedded:/var/lib/shop/jobs.db (default $"+urlVariable+",\nwhich keeps a password out of the list of processes)", func(s string) error {
		b.url = s
		return nil
	})
	set.DurationVar(&b.timeout, "timeout", 15*time.Second, "wait for each answer of the broker at most this `time`")
	return b
}

// use opens the broker for a while. User names and passwords are kept out of what goes
// wrong.
func (b *broker) use(ctx context.Context, do func(*provider.Provider) error) error {
	if b.url == "" {
		return command.Usagef("name the broker: -url URL, or set %s", urlVariable)
	}
	if b.timeout <= 0 {
		return command.Usagef("-timeout %v: it must be longer than nothing", b.timeout)
	}
	p, err := within(ctx, b, func(ctx context.Context) (*provider.Provider, error) { return b.open(ctx, b.url) })
	if err != nil {
		return shownSafely(err)
	}
	err = do(p)
	_, closing := within(context.WithoutCancel(ctx), b, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.Close(ctx) })
	if err == nil && closing != nil {
		err = fmt.Errorf("it is done, but the connection did not close well: %w", closing)
	}
	return shownSafely(err)
}

// within bounds a call, also one that does not look at its context: what that still
// does after its time ends with the process.
func within[T any](ctx context.Context, b *broker, call func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	within, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		value, err := call(within)
		answers <- answer{value, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-within.Done():
		select {
		case a = <-answers: // it looked, and says more
		case <-time.After(grace):
			a.err = within.Err()
		}
	}
	if a.err != nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		a.err = fmt.Errorf("the broker did not answer within %v (-timeout): %w", b.timeout, a.err)
	}
	return a.value, a.err
}

// grace is how long a call may take to notice that its time is over.
const grace = 200 * time.Millisecond

// shownSafely takes user names and passwords out of addresses in an error.
func shownSafely(err error) error {
	if err == nil {
		return nil
	}
	if safe := withoutUser(err.Error()); safe != err.Error() {
		return errors.New(safe)
	}
	return err
}

func withoutUser(text string) string {
	return regexp.MustCompile(`//[^/?#\s"]*@`).ReplaceAllString(text, "//")
}

// statsOf returns a provider's numbers, or says that it has none.
func statsOf(p *provider.Provider) (provider.Stats, error) {
	if p.Stats == nil {
		return nil, fmt.Errorf("provider %s has no Stats: it cannot say how its queues stand", p.Name)
	}
	return p.Stats, nil
}

// deadOf returns a provider's dead letters, or says that it keeps none.
func deadOf(p *provider.Provider) (provider.DeadLetters, error) {
	if p.Dead == nil {
		return nil, fmt.Errorf("provider %s has no Dead: it keeps no dead letters", p.Name)
	}
	return p.Dead, nil
}

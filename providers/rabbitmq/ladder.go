package rabbitmq

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The ladder keeps jobs until they are due, with nothing but queues whose messages
// live for a fixed time. A delay is a number of grains, written in digits of base
// eight; each digit that is not zero is one stay in the queue of its level and value.
// The job's routing key spells the digits, highest first, and its queue:
//
//	0.0.0.0.0.0.2.4.mail
//
// The exchange of a level sends a job by its digit there into a rung, or straight to
// the next level; the last one, "due", sends it to its queue. Eight levels of seven
// rungs each: a job makes at most eight stays, and at most four below a quarter of an
// hour.
const (
	ladderBase   = 8
	ladderLevels = 8
	ladderGrain  = 250 * time.Millisecond
	ladderTop    = ladderGrain << (3 * ladderLevels)
	// usualLevels are declared at start-up: rungs that a broker made a moment before
	// it crashed may come back late, and most delays need no others.
	usualLevels = 4
)

// longestDelay is what eight digits can say: 48 days.
const longestDelay = ladderTop - ladderGrain

// digits are a delay's, lowest first. A part of a grain counts as one: a job is late
// rather than early.
func digits(delay time.Duration) []int {
	n := int((delay + ladderGrain - 1) / ladderGrain)
	all := make([]int, ladderLevels)
	for i := range all {
		all[i], n = n%ladderBase, n/ladderBase
	}
	return all
}

// keyOf is the routing key of a job that waits for these digits.
func keyOf(all []int, queue string) string {
	var b strings.Builder
	for level := ladderLevels - 1; level >= 0; level-- {
		digit := 0
		if all != nil {
			digit = all[level]
		}
		b.WriteString(strconv.Itoa(digit))
		b.WriteByte('.')
	}
	b.WriteString(word(queue))
	return b.String()
}

// pattern matches the keys that have this digit at a level: exactly as many words as
// a key has, because "#" would match a queue by the end of its name.
func pattern(level, digit int) string {
	words := make([]string, ladderLevels+1)
	for i := range words {
		words[i] = "*"
	}
	words[ladderLevels-1-level] = strconv.Itoa(digit)
	return strings.Join(words, ".")
}

// below is the exchange to which a level's rungs send what has lived long enough.
func (n names) below(level int) string {
	if level == 0 {
		return n.due()
	}
	return n.step(level - 1)
}

// lifetime is how long a job stays in a rung.
func lifetime(level, digit int) time.Duration {
	return time.Duration(digit) * (ladderGrain << (3 * level))
}

// frame makes the exchanges of the ladder.
func (t *topology) frame(ctx context.Context) error {
	n := t.store.names
	if err := t.exchange(ctx, n.due(), nil); err != nil {
		return err
	}
	for level := range ladderLevels {
		err := t.exchange(ctx, n.step(level), func(ch *amqp.Channel) error {
			return ch.ExchangeBind(n.below(level), pattern(level, 0), n.step(level), false, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rung makes one queue of the ladder.
func (t *topology) rung(ctx context.Context, level, digit int) error {
	n := t.store.names
	queue := n.rung(level, digit)
	return t.once(ctx, queue, func() error {
		args := queueArguments()
		delete(args, "x-delivery-limit") // nobody consumes from it
		args["x-message-ttl"] = lifetime(level, digit).Milliseconds()
		args["x-dead-letter-exchange"] = n.below(level)
		args["x-dead-letter-strategy"] = "at-least-once"
		if err := t.declare(ctx, queue, args, nil); err != nil || t.store.cfg.Passive {
			return err
		}
		return declared(t.store.admin.do(ctx, func(ch *amqp.Channel) error {
			return ch.QueueBind(queue, pattern(level, digit), n.step(level), false, nil)
		}))
	})
}

// way makes all that a job needs to wait for these digits, and to come to its queue.
func (t *topology) way(ctx context.Context, all []int, queue string) error {
	if err := t.landing(ctx, queue); err != nil {
		return err
	}
	var rungs []rung
	for level, digit := range all {
		if digit > 0 {
			rungs = append(rungs, rung{level, digit})
		}
	}
	return t.rungs(ctx, rungs)
}

// rung names one queue of the ladder.
type rung struct{ level, digit int }

// rungs makes some, all at once.
func (t *topology) rungs(ctx context.Context, all []rung) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, r := range all {
		if name := t.store.names.rung(r.level, r.digit); t.has(name) {
			continue
		}
		group.Go(func() { errs[i] = t.rung(ctx, r.level, r.digit) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// landing leads from the ladder to a queue.
func (t *topology) landing(ctx context.Context, queue string) error {
	n := t.store.names
	if err := t.queue(ctx, queue); err != nil {
		return err
	}
	if err := t.frame(ctx); err != nil {
		return err
	}
	return t.once(ctx, n.due()+" "+queue, func() error {
		if t.store.cfg.Passive {
			return nil
		}
		key := strings.Repeat("*.", ladderLevels) + word(queue)
		return declared(t.store.admin.do(ctx, func(ch *amqp.Channel) error {
			return ch.QueueBind(n.jobs(queue), key, n.due(), false, nil)
		}))
	})
}

// usual makes the rungs of the levels that most jobs need, several at once.
func (t *topology) usual(ctx context.Context) error {
	if err := t.frame(ctx); err != nil {
		return err
	}
	var all []rung
	for level := range t.store.usualLevels() {
		for digit := 1; digit < ladderBase; digit++ {
			all = append(all, rung{level, digit})
		}
	}
	return t.rungs(ctx, all)
}

func (s *store) usualLevels() int {
	if s.in.levels > 0 {
		return s.in.levels
	}
	return usualLevels
}

// unmade lets the way of a job be made again.
func (t *topology) unmade(all []int, queue string) {
	n := t.store.names
	t.forget(n.jobs(queue))
	t.forget(n.due() + " " + queue)
	t.forget(n.due())
	for level := range ladderLevels {
		t.forget(n.step(level))
		if all[level] > 0 {
			t.forget(n.rung(level, all[level]))
		}
	}
}

package rabbitmq

import (
	"strings"
	"testing"
	"time"
)

func TestDigitsOfADelayAddUpToIt(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{
		1, ladderGrain, ladderGrain + 1, time.Second, 90 * time.Second, time.Hour, 7 * 24 * time.Hour, longestDelay,
	} {
		var sum time.Duration
		for level, digit := range digits(delay) {
			sum += lifetime(level, digit)
		}
		if sum < delay || sum >= delay+ladderGrain {
			t.Errorf("%v becomes %v; want it rounded up to the grain", delay, sum)
		}
	}
}

func TestLifetimesAreNumbersThatTheBrokerKnows(t *testing.T) {
	t.Parallel()
	const most = 1<<32 - 1
	if ms := lifetime(ladderLevels-1, ladderBase-1).Milliseconds(); ms > most {
		t.Errorf("the longest rung has %d ms; RabbitMQ knows times up to %d", ms, most)
	}
}

func TestKeysMatchTheirPatternsAlone(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"mail", "mail.v1", "a*b", "a#", "über/queue with spaces"} {
		all := digits(90 * time.Second)
		words := strings.Split(keyOf(all, queue), ".")
		if len(words) != ladderLevels+1 {
			t.Fatalf("the key of queue %q has %d words: %q", queue, len(words), words)
		}
		if last := words[ladderLevels]; strings.ContainsAny(last, "*#. ") {
			t.Errorf("queue %q is the word %q", queue, last)
		}
		for level, digit := range all {
			at := strings.Split(pattern(level, digit), ".")
			for i, want := range at {
				if want != "*" && words[i] != want {
					t.Errorf("key %q does not match %q", words, at)
				}
			}
		}
	}
}

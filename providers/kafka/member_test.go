package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

func TestSessionFollowsFromTheLease(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]time.Duration{
		time.Second:      4 * time.Second, // which brokers refuse unless they are told otherwise
		3 * time.Second:  6 * time.Second,
		5 * time.Second:  6 * time.Second,
		30 * time.Second: 30 * time.Second,
		10 * time.Minute: 10 * time.Minute,
	} {
		if got := sessionOf(lease); got != want {
			t.Errorf("a lease of %v has a session of %v; want %v", lease, got, want)
		}
		if sessionOf(lease) > lease+sessionSlack {
			t.Errorf("a dead worker with a lease of %v is found out only after %v", lease, sessionOf(lease))
		}
	}
}

func TestWhatAnAnswerMeansForACommit(t *testing.T) {
	t.Parallel()
	for want, errs := range map[answer][]error{
		accepted:         {nil},
		refusedMember:    {kafkago.RebalanceInProgress, kafkago.IllegalGeneration, kafkago.UnknownMemberId},
		refusedOnce:      {kafkago.GroupLoadInProgress, kafkago.GroupCoordinatorNotAvailable, kafkago.NotCoordinatorForGroup},
		refusedAsWritten: {kafkago.OffsetMetadataTooLarge},
		doubtful:         {io.EOF, kafkago.RequestTimedOut, kafkago.Unknown, errors.New("something else")},
	} {
		for _, err := range errs {
			if got := outcome(err); got != want {
				t.Errorf("%v means %d; want %d", err, got, want)
			}
			if wrapped := fmt.Errorf("commit: %w", err); err != nil && outcome(wrapped) != want {
				t.Errorf("%v means %d; want %d", wrapped, outcome(wrapped), want)
			}
		}
	}
}

// fixedAnswer answers a request with fixed bytes.
type fixedAnswer struct {
	bytes.Buffer
	answer io.Reader
}

func (w *fixedAnswer) Read(b []byte) (int, error) { return w.answer.Read(b) }

func TestHeartbeatOnTheWire(t *testing.T) {
	t.Parallel()
	b := &beat{group: "gr", membership: membership{id: "m-1", generation: 7}}
	for code, answer := range map[kafkago.Error]string{
		0:                           "\x00\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		kafkago.RebalanceInProgress: "\x00\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x01\x00\x00\x1b", // after a pause
	} {
		w := &fixedAnswer{answer: bytes.NewReader([]byte(answer))}
		got, err := b.RawExchange(w)
		if err != nil || got.(*beat).code != code {
			t.Errorf("the answer %x: %+v, %v; want %v", answer, got, err, code)
		}
		want := "\x00\x00\x00\x19" + // size
			"\x00\x0c\x00\x03\x00\x00\x00\x00\xff\xff" + // Heartbeat, version 3, no client id
			"\x00\x02gr" + "\x00\x00\x00\x07" + "\x00\x03m-1" + "\xff\xff"
		if w.String() != want {
			t.Errorf("the request is\n     %x\nwant %x", w.String(), want)
		}
	}
	for _, broken := range []string{"", "\x00\x00\x00\x0a\x00", "\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if _, err := b.RawExchange(&fixedAnswer{answer: bytes.NewReader([]byte(broken))}); err == nil {
			t.Errorf("the answer %x is no error", broken)
		}
	}
}

func TestTheMarkIsAheadOnlyWhereMuchIsStarted(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var p pace
	if p.starts = 50; p.ahead(now, 200) != 0 {
		t.Errorf("it is ahead before the first commit")
	}
	p.committed(now)
	p.starts = few - 1
	if got := p.ahead(now.Add(brisk/2), 200); got != 0 {
		t.Errorf("it is %d ahead of a few starts; want each put on record as it comes", got)
	}
	p.starts = 50
	if got := p.ahead(now.Add(brisk/2), 200); got != 100 {
		t.Errorf("it is %d ahead of 50 starts since the last commit; want 100", got)
	}
	if got := p.ahead(now.Add(brisk/2), 60); got != 60 {
		t.Errorf("it is %d ahead; want at most 60", got)
	}
	if got := p.ahead(now.Add(2*brisk), 200); got != 0 {
		t.Errorf("it is %d ahead long after the last commit; want 0", got)
	}
}

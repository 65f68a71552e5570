package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestAfterCountsWhatHappened(t *testing.T) {
	was := Counters{Failures: 1, Crashes: 2, Snoozes: 3, Parks: 4, Starts: 5, StartCrashes: 1, Replays: 6}
	for _, c := range []struct {
		why  Why
		want Counters
		adds int // to the history
	}{
		{FailedAgain, Counters{Failures: 2, Crashes: 2, Snoozes: 3, Parks: 4, Starts: 5, StartCrashes: 1, Replays: 6}, 1},
		{SnoozedAgain, Counters{Failures: 1, Crashes: 2, Snoozes: 4, Parks: 4, Starts: 5, StartCrashes: 1, Replays: 6}, 0},
		{ParkedAgain, Counters{Failures: 1, Crashes: 2, Snoozes: 3, Parks: 5, Starts: 5, StartCrashes: 1, Replays: 6}, 0},
		{StartedAgain, Counters{Failures: 1, Crashes: 2, Snoozes: 3, Parks: 4, Starts: 6, StartCrashes: 2, Replays: 6}, 0},
	} {
		j := least()
		j.Counters, j.History = was, []Failure{{Message: "first"}}
		got := j.After(Again{Why: c.why, After: time.Minute, Failure: Failure{Message: "second"}})
		if diff := cmp.Diff(c.want, got.Counters); diff != "" {
			t.Errorf("why %d: counters (-want +got):\n%s", c.why, diff)
		}
		if len(got.History) != 1+c.adds {
			t.Errorf("why %d: %d failures in the history; want %d", c.why, len(got.History), 1+c.adds)
		}
		if got.Delay != time.Minute {
			t.Errorf("why %d: a delay of %v; want a minute", c.why, got.Delay)
		}
		if j.Counters != was || len(j.History) != 1 || j.Delay != 0 {
			t.Errorf("why %d: After changed the job that it was called on", c.why)
		}
	}
}

func TestDeadKeepsTheFailureLast(t *testing.T) {
	j := least()
	j.Delay = time.Hour
	j.Counters.Failures = 2
	j.History = []Failure{{Message: "first"}, {Message: "second"}}
	for attempt, want := range map[int32]int32{0: 2, 2: 2, 3: 3} {
		got := j.Dead(Failure{Message: "last", Attempt: attempt})
		if got.Counters.Failures != want {
			t.Errorf("dead-lettered at attempt %d: %d failures; want %d", attempt, got.Counters.Failures, want)
		}
		if n := len(got.History); n != 3 || got.History[2].Message != "last" || got.Delay != 0 {
			t.Errorf("dead-lettered at attempt %d: %+v", attempt, got)
		}
	}
}

func TestReplayStartsTheCountersAgain(t *testing.T) {
	at := time.Unix(100, 0)
	j := least()
	j.History = []Failure{{Message: "first"}}
	j.Counters = Counters{Failures: 5, Crashes: 2, Snoozes: 1, Parks: 1, Starts: 3, StartCrashes: 2, Replays: 1}
	j.Replays = []Replay{{At: time.Unix(1, 0), Failures: 9}}
	got := j.Replay(at)
	want := j
	want.Counters = Counters{Replays: 2}
	want.Replays = []Replay{{At: time.Unix(1, 0), Failures: 9}, {At: at, Failures: 5, Crashes: 2}}
	want.FirstDue = at
	if diff := cmp.Diff(want, got, whole); diff != "" {
		t.Errorf("a replayed job (-want +got):\n%s", diff)
	}
}

func TestHistoryKeepsTheLastTen(t *testing.T) {
	j := least()
	for i := range MaxHistory + 3 {
		j = j.After(Again{Why: FailedAgain, Failure: Failure{Message: fmt.Sprint(i)}})
		j = j.Replay(time.Unix(int64(i), 0))
	}
	if n := len(j.History); n != MaxHistory || j.History[0].Message != "3" || j.History[n-1].Message != "12" {
		t.Errorf("the history is %+v; want the last %d", j.History, MaxHistory)
	}
	if n := len(j.Replays); n != MaxHistory || j.Replays[n-1].At.Unix() != 12 || j.Counters.Replays != 13 {
		t.Errorf("the replays are %+v of %d; want the last %d of 13", j.Replays, j.Counters.Replays, MaxHistory)
	}
}

// TestCopiesShareNothingThatIsWritten holds two rewrites of one job apart, though
// its history has room behind it.
func TestCopiesShareNothingThatIsWritten(t *testing.T) {
	j := least()
	j.History = append(make([]Failure, 0, 8), Failure{Message: "first"})
	a := j.After(Again{Why: FailedAgain, Failure: Failure{Message: "a"}})
	b := j.After(Again{Why: FailedAgain, Failure: Failure{Message: "b"}})
	if a.History[1].Message != "a" || b.History[1].Message != "b" || len(j.History) != 1 {
		t.Errorf("histories of two rewrites: %+v and %+v", a.History, b.History)
	}
}

func TestTextsAreCut(t *testing.T) {
	long := strings.Repeat("ü", MaxFailureText)
	f := Failure{Class: long, Message: "x" + long, Worker: "\xff", Detail: long}.cut()
	for name, s := range map[string]string{"class": f.Class, "message": f.Message, "worker": f.Worker, "detail": f.Detail} {
		if len(s) > MaxFailureText || !utf8.ValidString(s) || s == "" {
			t.Errorf("%s is %d bytes, valid: %v", name, len(s), utf8.ValidString(s))
		}
	}
	if again := f.cut(); cmp.Diff(f, again, whole) != "" {
		t.Error("what is cut is not cut again")
	}
	j := least().Dead(Failure{Message: "\xff" + long})
	if _, err := Marshal(&j); err != nil {
		t.Errorf("a failure with broken text: %v", err)
	}
}

func TestSameStamp(t *testing.T) {
	j := least()
	for name, c := range map[string]struct {
		change func(*Job)
		want   bool
	}{
		"itself":         {func(*Job) {}, true},
		"another delay":  {func(j *Job) { j.Delay = time.Hour }, true},
		"a crash":        {func(j *Job) { j.Counters.Crashes++ }, true},
		"a start crash":  {func(j *Job) { j.Counters.StartCrashes++ }, true},
		"another id":     {func(j *Job) { j.ID = "job-2" }, false},
		"another task":   {func(j *Job) { j.Task = "t.v1.Tasks.Other" }, false},
		"a failure":      {func(j *Job) { j.Counters.Failures++ }, false},
		"a snooze":       {func(j *Job) { j.Counters.Snoozes++ }, false},
		"a park":         {func(j *Job) { j.Counters.Parks++ }, false},
		"a start":        {func(j *Job) { j.Counters.Starts++ }, false},
		"a replay":       {func(j *Job) { j.Counters.Replays++ }, false},
		"other contents": {func(j *Job) { j.Payload = []byte("x") }, true},
	} {
		other := j
		c.change(&other)
		if got := j.SameStamp(&other); got != c.want {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

func TestWhysReadWell(t *testing.T) {
	for why, want := range map[Why]string{
		0: "none", FailedAgain: "failed", SnoozedAgain: "snoozed", ParkedAgain: "parked", StartedAgain: "start recorded", 9: "why 9",
	} {
		if got := why.String(); got != want {
			t.Errorf("Why %d prints %q, want %q", int(why), got, want)
		}
	}
}

func TestRecordedStart(t *testing.T) {
	j := least()
	j.Counters.Crashes = 5
	if j.Counters.RecordedStart() {
		t.Error("a job without a recorded start is one")
	}
	j = j.After(Again{Why: StartedAgain})
	if !j.Counters.RecordedStart() {
		t.Error("the copy of a start is not a recorded start")
	}
	j.Counters.Crashes++
	if j.Counters.RecordedStart() {
		t.Error("a redelivery of a recorded start is one")
	}
}

func TestStarted(t *testing.T) {
	for name, c := range map[string]struct {
		has  Counters
		want bool
	}{
		"new": {}, "parked": {Counters{Parks: 3}, false}, "replayed": {Counters{Replays: 1}, false},
		"failed": {Counters{Failures: 1}, true}, "crashed": {Counters{Crashes: 1}, true},
		"snoozed": {Counters{Snoozes: 1}, true}, "start recorded": {Counters{Starts: 1}, true},
	} {
		if j := (Job{Counters: c.has}); j.Started() != c.want {
			t.Errorf("%s: started %v; want %v", name, j.Started(), c.want)
		}
	}
}

func TestIncompleteJobs(t *testing.T) {
	whole := least()
	if err := whole.Check(); err != nil {
		t.Errorf("a whole job: %v", err)
	}
	for name, clear := range map[string]func(*Job){
		"id": func(j *Job) { j.ID = "" }, "task": func(j *Job) { j.Task = "" }, "queue": func(j *Job) { j.Queue = "" },
	} {
		j := least()
		if clear(&j); !errors.Is(j.Check(), ErrIncomplete) {
			t.Errorf("without %s: %v; want ErrIncomplete", name, j.Check())
		}
	}
}

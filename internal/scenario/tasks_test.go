package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/backstage-go/backstage/runtime"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type payload = *wrapperspb.StringValue

// The tasks of the scenarios: what a job does is written in its payload, and is
// deduplicated by what stands before the first space.
const (
	taskName  = "scenario.Do"
	otherName = "scenario.Other"
	dedupeFor = time.Hour
)

func task(queue string, dedupe bool) backstage.Task[payload] {
	t := backstage.Task[payload]{Name: taskName, Queue: queue}
	if dedupe {
		t.DedupeFor = dedupeFor
		t.Dedupe = func(in payload) (string, error) {
			return backstage.JoinKey(backstage.KeyField("value", subject(in), subject(in) != ""))
		}
	}
	return t
}

// subject is what a job is about: the first word of its payload.
func subject(in payload) string {
	word, _, _ := strings.Cut(in.GetValue(), " ")
	return word
}

func job(queue, value string, opts ...backstage.EnqueueOption) backstage.Job {
	return backstage.NewJob(task(queue, false), wrapperspb.String(value), opts...)
}

// deeds runs payloads such as "A-1 sleep 50ms", writing what happens into a
// ledger.
type deeds struct{ ledger ledger }

// do is the handler of the scenarios.
func (d deeds) do(ctx context.Context, in payload, next *backstage.Next) error {
	info, _ := backstage.InfoFrom(ctx)
	about, deed, _ := strings.Cut(in.GetValue(), " ")
	deed, argument, _ := strings.Cut(deed, " ")
	d.ledger.write(entry{What: "start", Subject: about, Job: info.ID, Attempt: info.Attempt, Crashes: info.Crashes})
	err := d.deed(ctx, info, next, about, deed, argument)
	what := "end"
	if err != nil {
		what = "fail"
	}
	d.ledger.write(entry{What: what, Subject: about, Job: info.ID, Attempt: info.Attempt, Crashes: info.Crashes})
	return err
}

func (d deeds) deed(ctx context.Context, info backstage.Info, next *backstage.Next, about, deed, argument string) error {
	switch deed {
	case "":
		return nil
	case "sleep": // for as long as the argument says, or until cancelled
		length, err := time.ParseDuration(argument)
		if err != nil {
			return backstage.Permanent(err)
		}
		select {
		case <-time.After(length):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case "hang": // until killed, in the first run; for as long as the argument says later
		if info.Crashes == 0 {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		length, _ := time.ParseDuration(argument)
		time.Sleep(length)
		return nil
	case "deaf": // to its context, for as long as the argument says
		length, err := time.ParseDuration(argument)
		if err != nil {
			return backstage.Permanent(err)
		}
		time.Sleep(length)
		return nil
	case "snooze": // as often as the argument says
		if fmt.Sprint(info.Snoozes) != argument {
			return backstage.Snooze(50 * time.Millisecond)
		}
		return nil
	case "skip":
		return backstage.Skip("nothing to do")
	case "panic":
		panic("nil map")
	case "stop": // its own worker, twice, and then goes on
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return backstage.Permanent(err)
		}
		for range 2 {
			if err := self.Signal(syscall.SIGTERM); err != nil {
				return backstage.Permanent(err)
			}
		}
		time.Sleep(200 * time.Millisecond)
		return nil
	case "exit": // as the kernel's OOM killer would have it
		os.Exit(137)
	case "flaky": // until the attempt of the argument
		if fmt.Sprint(info.Attempt) != argument {
			return errors.New("flaky")
		}
		return nil
	case "bad":
		return backstage.Permanent(errors.New("unknown account"))
	case "down":
		return errors.New("503")
	case "chain": // the argument is a list of steps
		step, rest, more := strings.Cut(argument, ",")
		if more {
			backstage.Add(next, task(step, false), "Do.Do", wrapperspb.String(about+"."+step+" chain "+rest))
		}
		return nil
	}
	return backstage.Permanent(fmt.Errorf("unknown deed %q", deed))
}

func registration(queue string) backstage.Registration {
	return backstage.Registration{Name: taskName, Queue: queue, Policy: backstage.Policy{
		Backoff: backstage.Backoff{Base: 100 * time.Millisecond, Cap: 2 * time.Second},
	}}
}

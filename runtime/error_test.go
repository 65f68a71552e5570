package backstage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestTheReasonOfABatchComesFirst, and the jobs that were not sent for it are
// counted; each receipt has its own error all the same.
func TestTheReasonOfABatchComesFirst(t *testing.T) {
	inBubble(t, func(r *rig) {
		fine, wrong := job(task("a"), "fine"), job(task("a"), "wrong", backstage.WithID("wrong"), backstage.In(-1))
		receipts, err := r.client.Enqueue(r.Context(), fine, fine, wrong, fine)
		want := "enqueue a wrong: not stored: In(-1ns): a delay cannot be negative\n3 other jobs of the batch were not sent for that"
		if err == nil || err.Error() != want {
			r.Errorf("the batch's error:\n%v\nwant:\n%s", err, want)
		}
		for i, receipt := range receipts {
			if !errors.Is(err, receipt.Err) {
				r.Errorf("the batch's error does not join that of receipt %d", i)
			}
		}
		if got := receipts[0].Err.Error(); !strings.Contains(got, "another job of the batch is invalid") {
			r.Errorf("receipt of a job that was not sent: %s", got)
		}
		if _, err := r.client.Enqueue(r.Context(), fine, wrong); err == nil || !strings.HasSuffix(err.Error(), "\n1 other job of the batch was not sent for that") {
			r.Errorf("the error of a batch of two: %v", err)
		}
	})
}

// TestErrorsOfAReplayNameTheDeadLetter, and the job where it is known.
func TestErrorsOfAReplayNameTheDeadLetter(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { return backstage.Permanent(errBoom) }))
		r.enqueue(job(task("a"), "", backstage.WithID("A-1")))
		pass(time.Second)
		r.p.Dead = unwilling{r.p.Dead}
		address := r.onlyDead().Address
		receipts, err := backstage.Replay(r.Context(), r.p, "nowhere", address)
		want := "replay dead letter \"nowhere\": not stored: not found\n" +
			"replay dead letter \"" + address + "\" (a A-1): perhaps stored: boom"
		if err == nil || err.Error() != want {
			r.Errorf("replay:\n%v\nwant:\n%s", err, want)
		}
		var why *backstage.EnqueueError
		if !errors.As(receipts[1].Err, &why) || receipts[1].ID != "A-1" || why.ID != "A-1" || why.Task != "a" || why.Address != address {
			r.Errorf("receipt %+v, want the job's id and task and its address", receipts[1])
		}
		if _, err := backstage.Replay(r.Context(), nil, "x"); err == nil {
			r.Error("replay without a provider: no error")
		}
	})
}

// unwilling keeps its dead letters.
type unwilling struct{ provider.DeadLetters }

func (unwilling) Replay(context.Context, ...string) ([]provider.Stored, error) { return nil, errBoom }

// TestErrorsSayWhatIsClosed, wherever a caller meets them.
func TestErrorsSayWhatIsClosed(t *testing.T) {
	inBubble(t, func(r *rig) {
		w := r.start(backstage.WorkerConfig{}, handle("a", nothing))
		if err := r.p.Close(r.Context()); err != nil {
			r.Fatal(err)
		}
		<-w.done
		_, enqueued := backstage.Enqueue(r.Context(), r.client, job(task("a"), "", backstage.WithID("id")))
		_, cancelled := r.client.Cancel(r.Context(), "id")
		_, replayed := backstage.Replay(r.Context(), r.p, "x")
		for _, row := range []struct {
			what string
			err  error
			want string
		}{
			{"the worker under way", w.err, "receive: provider memory is closed"},
			{"a new worker", r.newWorker(backstage.WorkerConfig{}, handle("a", nothing)).Run(r.Context()), "subscribe: provider memory is closed"},
			{"enqueue", enqueued, "enqueue a id: not stored: provider memory is closed"},
			{"cancel", cancelled, "provider memory is closed"},
			{"replay", replayed, `replay dead letter "x": not stored: provider memory is closed`},
		} {
			if row.err == nil || !strings.HasPrefix(row.err.Error(), row.want) || !errors.Is(row.err, provider.ErrClosed) {
				r.Errorf("%s: %v, want %q", row.what, row.err, row.want)
			}
		}
	})
}

// TestTextThatIsNotUTF8 is named by the path of its field.
func TestTextThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	broken := func() *structpb.Value { return structpb.NewStringValue("\xff") }
	list := structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewBoolValue(true), broken()}})
	for _, row := range []struct {
		in   proto.Message
		want string
	}{
		{broken(), "string_value"},
		{list, "list_value.values[1].string_value"},
		{&structpb.Struct{Fields: map[string]*structpb.Value{"a": list}}, `fields["a"].list_value.values[1].string_value`},
		{&structpb.Struct{Fields: map[string]*structpb.Value{"\xff": nil}}, `fields["\xff"]`},
	} {
		err := backstage.NewJob(backstage.Task[proto.Message]{Name: "a"}, row.in).Err()
		if want := "task a: payload field " + row.want + " is not valid UTF-8"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

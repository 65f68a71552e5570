package backstage

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// TestRunContext: a handler's context says the same whether somebody asked before
// its end or only then, and so do contexts made of it.
func TestRunContext(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	for _, test := range []struct {
		name  string
		end   func(c *runContext, stop context.CancelCauseFunc)
		err   error
		cause error
	}{
		{"deadline", func(*runContext, context.CancelCauseFunc) { time.Sleep(time.Minute) }, context.DeadlineExceeded, ErrTimeout},
		{"cancelled", func(c *runContext, _ context.CancelCauseFunc) { c.cancel(lost); c.cancel(ErrShutdown) }, context.Canceled, lost},
		{"worker stops", func(_ *runContext, stop context.CancelCauseFunc) { stop(ErrShutdown) }, context.Canceled, ErrShutdown},
		{"handler returned", func(c *runContext, _ context.CancelCauseFunc) { c.release() }, context.Canceled, context.Canceled},
	} {
		for _, asked := range []bool{false, true} {
			name := test.name + ", asked at the end"
			if asked {
				name = test.name + ", asked before"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					parent, stop := context.WithCancelCause(context.Background())
					defer stop(nil)
					c := &runContext{parent: parent, run: new(Run), deadline: time.Now().Add(time.Minute)}
					defer c.release()
					if err := c.Err(); err != nil {
						t.Fatalf("Err before the end = %v", err)
					}
					var child context.Context
					if asked {
						child = childOf(t, c)
					}
					test.end(c, stop)
					if !asked {
						child = childOf(t, c)
					}
					synctest.Wait()
					for what, ctx := range map[string]context.Context{"the context": c, "a child": child} {
						select {
						case <-ctx.Done():
						default:
							t.Errorf("%s is not done", what)
						}
						if err := ctx.Err(); !errors.Is(err, test.err) {
							t.Errorf("%s: Err = %v, want %v", what, err, test.err)
						}
						if cause := context.Cause(ctx); !errors.Is(cause, test.cause) {
							t.Errorf("%s: Cause = %v, want %v", what, cause, test.cause)
						}
					}
				})
			})
		}
	}
}

func childOf(t *testing.T, c context.Context) context.Context {
	child, cancel := context.WithCancel(c)
	t.Cleanup(cancel)
	return child
}

// TestRunContextCarriesItsRun: also to contexts made of it.
func TestRunContextCarriesItsRun(t *testing.T) {
	t.Parallel()
	c := &runContext{parent: context.Background(), run: &Run{job: &provider.Job{ID: "a"}}, deadline: time.Now().Add(time.Minute)}
	defer c.release()
	for _, ctx := range []context.Context{c, childOf(t, c)} {
		if info, ok := InfoFrom(ctx); !ok || info.ID != "a" {
			t.Errorf("InfoFrom = %v, %v", info, ok)
		}
	}
	if deadline, ok := c.Deadline(); !ok || deadline != c.deadline {
		t.Errorf("Deadline = %v, %v", deadline, ok)
	}
}

package backstage

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/proto"
)

// Registration is what generated code knows of a task where its jobs are run.
type Registration struct {
	// Name is the task's name on the wire.
	Name string
	// Aliases are earlier names that the handler accepts too.
	Aliases []string
	// Queue is where its jobs wait. Defaults to DefaultQueue.
	Queue string
	// Policy says how they are run.
	Policy Policy
	// Next is what the tasks need that may follow.
	Next []Needs
}

// Register lets a worker run a task that has no next. Generated code calls it.
// What is wrong with it is returned by Worker.Run.
func Register[M proto.Message](w *Worker, task Registration, handle func(context.Context, M) error, opts ...RegisterOption) {
	add[M](w, task, handle == nil, func(ctx context.Context, run *Run) error {
		return handle(ctx, run.message.(M))
	}, opts)
}

// RegisterChain lets a worker run a task that other tasks may follow: N is the
// task's own type over Next. Generated code calls it. What is wrong with it is
// returned by Worker.Run.
func RegisterChain[M proto.Message, N ~struct{ recorded *recorded }](w *Worker, task Registration, handle func(context.Context, M, *N) error, opts ...RegisterOption) {
	add[M](w, task, handle == nil, func(ctx context.Context, run *Run) error {
		// New ones at each call, which the handler's next shares: an interceptor
		// that tries again must not double them.
		run.next.recorded = new(recorded)
		next := N(run.next)
		return handle(ctx, run.message.(M), &next)
	}, opts)
}

func add[M proto.Message](w *Worker, task Registration, missing bool, handle HandleFunc, opts []RegisterOption) {
	var none M
	message := none.ProtoReflect().Type()
	r := &registered{Registration: task, missing: missing, handle: handle}
	r.Queue = cmp.Or(r.Queue, DefaultQueue)
	r.decode = func(payload []byte) (proto.Message, error) {
		in := message.New().Interface()
		return in, proto.Unmarshal(payload, in)
	}
	for _, option := range opts {
		option.register(r)
	}
	w.register(r)
}

// registered is a task that a worker runs.
type registered struct {
	Registration
	queues       []string // beyond Queue
	missing      bool     // there is no handler
	interceptors []Interceptor
	decode       func(payload []byte) (proto.Message, error)
	handle       HandleFunc
	call         HandleFunc // handle with all interceptors
}

// waitsIn returns the queues in which jobs of the task may wait.
func (r *registered) waitsIn() []string { return append([]string{r.Queue}, r.queues...) }

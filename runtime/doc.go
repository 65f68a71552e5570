// Package backstage runs typed background tasks. Tasks are declared in .proto
// files; generated code gives each task service a client that enqueues its jobs
// and a handler interface that runs them, over the Client and the Worker here.
// What stores the jobs is a provider: package embedded needs no server.
//
//	client, err := backstage.NewClient(p, backstage.ClientConfig{})
//	orders, err := ordertasks.NewClient(client)
//	receipt, err := orders.ChargeCard(ctx, &ordersv1.ChargeCardRequest{OrderId: "A-1009"})
//
//	worker, err := backstage.NewWorker(p, backstage.WorkerConfig{})
//	ordertasks.Register(worker, &shop{})
//	err = worker.Run(ctx)
//
// # What is promised
//
// When an enqueue returns without error, the job is stored by the broker with the
// durability that the broker was asked for. When it fails, the *EnqueueError says
// whether the job is not stored or perhaps stored, and the id to try again with.
//
// An accepted job runs to an outcome (done, skipped, or dead-lettered with its
// reason), or is still visible as waiting. Delivery is at least once: a worker
// that dies after its handler's effect and before the acknowledgement leaves a
// job that runs again, elsewhere, within one lease plus five seconds. The job's
// id, Info.ID, is the same then; it is the natural key to make an effect happen
// once. Info.Crashes above zero says that effects may exist already.
//
// The next jobs of a chain are durable before the job that made them is
// acknowledged, under ids that are the same however often it runs.
//
// Exactly-once effects are not promised, by this package or by any other. Nor is
// it promised that a deduplicated submission runs once, a global order, or equal
// timing on all brokers.
//
// # What a handler can say
//
// A handler returns nil when its job is done. Any error is a failure, after which
// the job is retried with backoff while attempts are left; [Permanent],
// [RetryAfter], [Snooze] and [Skip] say something else. A panic and
// runtime.Goexit are failures. Its context ends at the attempt's timeout
// ([ErrTimeout]), when the lease is lost ([ErrLeaseLost]), and when the worker's
// grace period is over ([ErrShutdown]): context.Cause tells which. A handler that
// returns nil after its deadline is done all the same. A slot waits for its
// handler, however long: one worker never runs a job a second time while the first
// run lasts.
//
// # Counting
//
// Failures count against max_attempts. Runs that never reached an outcome,
// because their worker died, are counted apart as crashes: [MaxCrashes] of them
// dead-letter the job. Snoozes, parks (nobody here knows the task) and shutdowns
// count as nothing.
//
// # For operators
//
// A job that was given up is in the provider's dead letters, with its reason and
// its last failures, until somebody decides: p.Dead.List shows them, [Replay]
// returns them to their queues, p.Dead.Discard removes them. p.Stats has the
// numbers of each queue: how many wait and for how long, run, are held for later,
// are dead. [Worker.Health] says what is not well. The types are those of package
// provider.
//
// A worker logs what somebody should know to WorkerConfig.Logger, never payloads:
// at Error what is dead-lettered or stuck, at Warn failures, parks (nobody here
// knows the task; once a minute and task) and lost leases, at Info starts, stops,
// and jobs that run again because their worker had died. An [Observer] is told
// everything, for metrics.
//
// # Precedence
//
// A policy given at enqueue wins over the task's, the task's over its service's,
// and that over the built-in one. What concerns making a job (queue, delay,
// expiry, keys) is stored with it; what concerns running it (timeout, attempts,
// backoff, max age) is taken from the code of the worker that runs it, unless it
// was given at enqueue.
package backstage

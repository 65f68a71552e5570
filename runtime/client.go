package backstage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// DefaultPayloadLimit is the most bytes of a payload, unless configured.
const DefaultPayloadLimit = 1 << 20

// ClientConfig configures a Client. The zero value works.
type ClientConfig struct {
	// PayloadLimit is the most bytes of one payload. Defaults to
	// DefaultPayloadLimit.
	PayloadLimit int
	// Interceptors are around every enqueue; the first is the outermost.
	// Defaults to none.
	Interceptors []EnqueueInterceptor
	// Observer is told of every enqueued job, synchronously. Defaults to nobody.
	Observer Observer
}

// Client enqueues jobs on a provider. It may be used by many goroutines at once,
// and has nothing to close: the provider is the user's.
type Client struct {
	cfg     ClientConfig
	broker  broker
	enqueue EnqueueFunc
	last    atomic.Int64 // when a job was last made, in nanoseconds
}

// NewClient returns a client on a provider. It fails for a nil provider and for a
// configuration that is out of range; what a task needs and the provider lacks is
// found by the generated NewClient.
func NewClient(p *provider.Provider, cfg ClientConfig) (*Client, error) {
	if p == nil || p.Jobs == nil {
		return nil, errors.New("new client: the provider is nil")
	}
	if cfg.PayloadLimit < 0 {
		return nil, errors.New("new client: PayloadLimit must not be negative")
	}
	cfg.PayloadLimit = cmp.Or(cfg.PayloadLimit, DefaultPayloadLimit)
	c := &Client{cfg: cfg, broker: broker{p}}
	c.cfg.Observer = cfg.Observer.guarded(slog.Default())
	c.enqueue = c.send
	for i := len(cfg.Interceptors) - 1; i >= 0; i-- {
		c.enqueue = cfg.Interceptors[i](c.enqueue)
	}
	return c, nil
}

// Enqueue stores jobs, of one task or of several, and returns a receipt for each,
// in their order. All are checked before any is sent: if one is invalid, none is
// sent. The error joins the *EnqueueError of each job that was not stored or may
// not be, what is wrong first, and counts those that were not sent for it. When ctx
// ends, what is not known to be stored is Refused or Unknown.
func (c *Client) Enqueue(ctx context.Context, jobs ...Job) ([]Receipt, error) {
	receipts, err := c.enqueue(ctx, jobs)
	if err == nil && len(receipts) != len(jobs) {
		err = errNoReceipt // jobs that an interceptor dropped must not look stored
	}
	return receipts, err
}

// Check returns a *MissingError for each task that needs what the provider lacks,
// joined.
func (c *Client) Check(needs ...Needs) error {
	var missing []error
	for _, need := range needs {
		missing = append(missing, c.broker.check(need)...)
	}
	return errors.Join(missing...)
}

// Cancel removes the held jobs with an id that have not started, and reports
// whether there were any. It returns a *MissingError where the provider cannot
// find held jobs by their id.
func (c *Client) Cancel(ctx context.Context, id string) (bool, error) {
	return c.broker.cancel(ctx, id)
}

func (c *Client) send(ctx context.Context, jobs []Job) ([]Receipt, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	receipts, err := c.refuse(jobs)
	if err == nil {
		batch := make([]provider.Job, len(jobs))
		now := time.Now()
		moment := c.moments(len(jobs), now)
		for i, job := range jobs {
			job.made.stamped(&batch[i], now)
			batch[i].Enqueued = moment.Add(time.Duration(i))
		}
		receipts, err = receiptsOf(batch, c.broker.publish(ctx, batch))
	}
	if c.cfg.Observer != nil {
		for i := range receipts {
			c.cfg.Observer(JobEnqueued{Job: jobs[i], Receipt: receipts[i]})
		}
	}
	return receipts, err
}

// moments returns the first of n nanoseconds, not before a time, in which this
// client made no other job: jobs that were given one id are told apart by theirs.
func (c *Client) moments(n int, from time.Time) time.Time {
	for {
		last := c.last.Load()
		moment := max(from.UnixNano(), last+1)
		if c.last.CompareAndSwap(last, moment+int64(n)-1) {
			return time.Unix(0, moment)
		}
	}
}

// refuse checks all jobs, and refuses all if one is invalid.
func (c *Client) refuse(jobs []Job) ([]Receipt, error) {
	invalid := make([]error, len(jobs))
	found := false
	for i, job := range jobs {
		invalid[i] = c.invalid(job)
		found = found || invalid[i] != nil
	}
	if !found {
		return nil, nil
	}
	return refused(jobs, invalid)
}

// refused are the receipts of jobs none of which is sent.
func refused(jobs []Job, invalid []error) ([]Receipt, error) {
	stored := make([]provider.Stored, len(jobs))
	batch := make([]provider.Job, len(jobs))
	for i, job := range jobs {
		batch[i] = job.get().job
		stored[i] = provider.Stored{ID: job.ID(), Outcome: Refused, Err: cmp.Or(invalid[i], errOther)}
	}
	return receiptsOf(batch, stored)
}

// invalid returns why a job cannot be stored.
func (c *Client) invalid(job Job) error {
	made := job.get()
	if err := made.err(); err != nil {
		return err
	}
	if size := len(made.job.Payload); size > c.cfg.PayloadLimit {
		return &TooLargeError{Task: made.job.Task, Size: size, Limit: c.cfg.PayloadLimit}
	}
	delay := job.Delay()
	need := made.needs
	need.Delay = delay > 0
	return errors.Join(append(c.broker.check(need), c.broker.tooLong(need, delay))...)
}

// receiptsOf tells callers what became of jobs; addresses are those of the dead
// letters that they were, if so.
func receiptsOf(jobs []provider.Job, stored []provider.Stored, addresses ...string) ([]Receipt, error) {
	receipts := make([]Receipt, len(jobs))
	var failed, unsent []error
	for i, s := range stored {
		r := Receipt{ID: jobs[i].ID, Outcome: s.Outcome}
		switch s.Outcome {
		case Stored:
		case Duplicate:
			r.ID, r.Duplicate = s.Holder, true
		default:
			why := &EnqueueError{ID: jobs[i].ID, Task: jobs[i].Task, Outcome: s.Outcome, Err: cmp.Or(s.Err, errNoReason)}
			if len(addresses) > 0 {
				why.Address = addresses[i]
			}
			if r.Err = why; why.Err == errOther {
				unsent = append(unsent, why)
			} else {
				failed = append(failed, why)
			}
		}
		receipts[i] = r
	}
	if len(unsent) > 0 {
		failed = append(failed, &unsentError{unsent})
	}
	if len(failed) == 1 {
		return receipts, failed[0]
	}
	return receipts, errors.Join(failed...)
}

var errNoReason = errors.New("the provider gave no reason")

package providertest

import (
	"context"

	"github.com/backstage-go/backstage/runtime/provider"
)

// hooks are put around the calls of a provider, to stop at a point of a job's life
// or to break a promise. Each is given the call that it is put around; nil leaves
// the call as it is.
type hooks struct {
	publish   func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored
	subscribe func(ctx context.Context, opts provider.SubscribeOptions, call subscribeCall) (provider.Subscription, error)
	facts     func(provider.JobFacts) provider.JobFacts

	receive  func(s *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error)
	extend   func(s *hookedSub, ctx context.Context, ds []provider.Delivery, call extendCall) []error
	closeSub func(s *hookedSub, ctx context.Context, call func(context.Context) error) error

	job        func(d *hookedDelivery, j *provider.Job) *provider.Job
	lost       func(d *hookedDelivery, lost <-chan struct{}) <-chan struct{}
	ack        func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error
	retry      func(d *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error
	deadLetter func(d *hookedDelivery, ctx context.Context, f provider.Failure, call deadCall) error
	release    func(d *hookedDelivery, ctx context.Context, call func(context.Context) error) error
}

type (
	publishCall   func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions) []provider.Stored
	subscribeCall func(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error)
	receiveCall   func(ctx context.Context, lanes []string, most int) ([]provider.Delivery, error)
	extendCall    func(ctx context.Context, ds []provider.Delivery) []error
	ackCall       func(ctx context.Context, next []provider.Job) error
	retryCall     func(ctx context.Context, again provider.Again) error
	deadCall      func(ctx context.Context, f provider.Failure) error
)

// wrap puts hooks around the Jobs of a provider.
func wrap(p *provider.Provider, h *hooks) { p.Jobs = &hookedJobs{p.Jobs, h} }

type hookedJobs struct {
	provider.Jobs
	h *hooks
}

func (j *hookedJobs) Publish(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions) []provider.Stored {
	if j.h.publish == nil {
		return j.Jobs.Publish(ctx, jobs, opts)
	}
	return j.h.publish(ctx, jobs, opts, j.Jobs.Publish)
}

func (j *hookedJobs) Subscribe(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error) {
	call := func(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error) {
		s, err := j.Jobs.Subscribe(ctx, opts)
		if err != nil {
			return nil, err
		}
		return &hookedSub{Subscription: s, h: j.h, opts: opts}, nil
	}
	if j.h.subscribe == nil {
		return call(ctx, opts)
	}
	return j.h.subscribe(ctx, opts, call)
}

func (j *hookedJobs) Facts() provider.JobFacts {
	if j.h.facts == nil {
		return j.Jobs.Facts()
	}
	return j.h.facts(j.Jobs.Facts())
}

type hookedSub struct {
	provider.Subscription
	h    *hooks
	opts provider.SubscribeOptions
}

func (s *hookedSub) Receive(ctx context.Context, lanes []string, most int) ([]provider.Delivery, error) {
	call := func(ctx context.Context, lanes []string, most int) ([]provider.Delivery, error) {
		ds, err := s.Subscription.Receive(ctx, lanes, most)
		for i, d := range ds {
			ds[i] = &hookedDelivery{d, s}
		}
		return ds, err
	}
	if s.h.receive == nil {
		return call(ctx, lanes, most)
	}
	return s.h.receive(s, ctx, lanes, most, call)
}

func (s *hookedSub) Extend(ctx context.Context, ds []provider.Delivery) []error {
	call := func(ctx context.Context, ds []provider.Delivery) []error {
		inner := make([]provider.Delivery, len(ds))
		for i, d := range ds {
			inner[i] = d
			if h, ok := d.(*hookedDelivery); ok {
				inner[i] = h.Delivery
			}
		}
		return s.Subscription.Extend(ctx, inner)
	}
	if s.h.extend == nil {
		return call(ctx, ds)
	}
	return s.h.extend(s, ctx, ds, call)
}

func (s *hookedSub) Close(ctx context.Context) error {
	if s.h.closeSub == nil {
		return s.Subscription.Close(ctx)
	}
	return s.h.closeSub(s, ctx, s.Subscription.Close)
}

type hookedDelivery struct {
	provider.Delivery
	sub *hookedSub
}

func (d *hookedDelivery) Job() *provider.Job {
	if d.sub.h.job == nil {
		return d.Delivery.Job()
	}
	return d.sub.h.job(d, d.Delivery.Job())
}

func (d *hookedDelivery) Lost() <-chan struct{} {
	if d.sub.h.lost == nil {
		return d.Delivery.Lost()
	}
	return d.sub.h.lost(d, d.Delivery.Lost())
}

func (d *hookedDelivery) Ack(ctx context.Context, next []provider.Job) error {
	if d.sub.h.ack == nil {
		return d.Delivery.Ack(ctx, next)
	}
	return d.sub.h.ack(d, ctx, next, d.Delivery.Ack)
}

func (d *hookedDelivery) Retry(ctx context.Context, again provider.Again) error {
	if d.sub.h.retry == nil {
		return d.Delivery.Retry(ctx, again)
	}
	return d.sub.h.retry(d, ctx, again, d.Delivery.Retry)
}

func (d *hookedDelivery) DeadLetter(ctx context.Context, f provider.Failure) error {
	if d.sub.h.deadLetter == nil {
		return d.Delivery.DeadLetter(ctx, f)
	}
	return d.sub.h.deadLetter(d, ctx, f, d.Delivery.DeadLetter)
}

func (d *hookedDelivery) Release(ctx context.Context) error {
	if d.sub.h.release == nil {
		return d.Delivery.Release(ctx)
	}
	return d.sub.h.release(d, ctx, d.Delivery.Release)
}

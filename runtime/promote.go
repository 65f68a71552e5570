package backstage

import (
	"context"
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	// promoting is what health calls the promotion of delayed jobs.
	promoting = "promote delayed jobs"
	// promoterIsWell is how long a promoter must live to be taken for well.
	promoterIsWell = 2 * time.Second
)

var errPromoterEnded = errors.New("the promoter ended by itself")

// promote keeps delayed jobs moving, starting again after a failure.
func (s *shift) promote(ctx context.Context) {
	if s.broker.Delays == nil {
		return
	}
	var publish provider.Publish
	if s.broker.delaysLent() {
		publish = s.broker.promoted
	}
	for failures := int32(0); ctx.Err() == nil; failures++ {
		began := time.Now()
		well := time.AfterFunc(promoterIsWell, func() { s.trouble(promoting, nil) })
		err := s.broker.Delays.Promote(ctx, publish)
		well.Stop()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errPromoterEnded
		}
		if time.Since(began) > time.Minute {
			failures = 0
		}
		err = s.broker.named(err)
		s.trouble(promoting, err)
		s.observe(PromoterFailed{Err: err})
		s.cfg.Logger.Error("delayed jobs are not promoted, trying again", "error", err)
		sleep(ctx, growing(100*time.Millisecond, 10*time.Second, failures))
	}
}

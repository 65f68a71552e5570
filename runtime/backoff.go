package backstage

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Backoff is the wait before a retry. With Base equal to Cap it is constant.
// Otherwise it is exponential with full jitter: before retry n (1 is the first)
// uniform between 0 and Ceiling(n).
type Backoff struct {
	// Base is the ceiling before the first retry. Defaults to
	// DefaultBackoffBase.
	Base time.Duration
	// Cap bounds the ceiling. Defaults to DefaultBackoffCap, or to Base where
	// that is longer.
	Cap time.Duration
}

func (b Backoff) orDefault() Backoff {
	b.Base = cmp.Or(b.Base, DefaultBackoffBase)
	b.Cap = max(cmp.Or(b.Cap, DefaultBackoffCap), b.Base)
	return b
}

// Ceiling returns the longest wait before retry n, counted from 1.
func (b Backoff) Ceiling(n int) time.Duration {
	b = b.orDefault()
	ceiling := b.Base
	for ; n > 1 && ceiling < b.Cap; n-- {
		if ceiling > b.Cap/2 {
			return b.Cap
		}
		ceiling *= 2
	}
	return ceiling
}

// Schedule returns the ceilings of the retries that a number of attempts allows.
func (b Backoff) Schedule(maxAttempts int) []time.Duration {
	var ceilings []time.Duration
	for n := 1; n < maxAttempts; n++ {
		ceilings = append(ceilings, b.Ceiling(n))
	}
	return ceilings
}

// wait draws the wait before retry n.
func (b Backoff) wait(n int) time.Duration {
	ceiling := min(b.Ceiling(n), maxDelay)
	if b = b.orDefault(); b.Base == b.Cap {
		return ceiling
	}
	return rand.N(ceiling + 1)
}

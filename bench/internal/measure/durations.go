package measure

import (
	"fmt"
	"slices"
	"time"
)

// Durations are times of which the spread counts.
type Durations []time.Duration

// Quantile returns the least time that a share of all does not exceed, 0.5 for the
// median and 1 for the greatest; zero if there are none.
func (d Durations) Quantile(share float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	n := int(share*float64(len(sorted)) + 0.999999)
	return sorted[min(max(n, 1), len(sorted))-1]
}

// String returns the least, the greatest, and quantiles between, in milliseconds.
func (d Durations) String() string {
	ms := func(share float64) float64 { return float64(d.Quantile(share)) / float64(time.Millisecond) }
	return fmt.Sprintf("least %.2f, p50 %.2f, p90 %.2f, p99 %.2f, greatest %.2f ms of %d",
		ms(0), ms(0.5), ms(0.9), ms(0.99), ms(1), len(d))
}

package measure

import (
	"testing"
	"time"
)

func TestQuantilesAreTimesThatWereTaken(t *testing.T) {
	t.Parallel()
	var d Durations
	for i := range 200 {
		d = append(d, time.Duration(200-i))
	}
	for share, want := range map[float64]time.Duration{0: 1, 0.5: 100, 0.99: 198, 1: 200} {
		if got := d.Quantile(share); got != want {
			t.Errorf("quantile %v = %d, want %d", share, got, want)
		}
	}
	if got := Durations(nil).Quantile(0.5); got != 0 {
		t.Errorf("the median of nothing = %d, want 0", got)
	}
}

package kafka

import (
	"slices"
	"testing"
)

// TestAScanGoesOnBehindWhatIsDeletedMeanwhile reads from an offset that was there when it
// asked for the bounds.
func TestAScanGoesOnBehindWhatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, _ := c.open()
	publish(t, s, someJobs(5, "q")...)
	topic := s.names.jobs("q")
	for _, row := range []struct {
		before int64
		want   []int64
	}{{0, []int64{0, 1, 2, 3, 4}}, {2, []int64{2, 3, 4}}, {5, nil}} {
		if err := s.deleteRecords(t.Context(), topic, 0, row.before); err != nil {
			t.Fatal(err)
		}
		var got []int64
		err := s.scan(t.Context(), topic, 0, 0, 5, func(r *received) bool {
			got = append(got, r.offset)
			return true
		})
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("a scan from 0 to 5 where offsets below %d are deleted: %v, %v; want %v", row.before, got, err, row.want)
		}
	}
}

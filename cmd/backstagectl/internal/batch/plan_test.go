package batch_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/batch"
)

func TestAJobIsReplayedByItsNewestLetterAlone(t *testing.T) {
	t.Parallel()
	at := time.Date(2025, 10, 31, 12, 0, 0, 0, time.UTC)
	letters := []batch.Letter{
		{Address: "4", Job: "B", DiedAt: at.Add(2)},
		{Address: "3", Job: "A", DiedAt: at.Add(1)},
		{Address: "5", Job: "A", DiedAt: at.Add(3)},
		{Address: "5", Job: "A", DiedAt: at.Add(3)},            // asked for twice
		{Address: "2", DiedAt: at}, {Address: "1", DiedAt: at}, // no records, newest first
	}
	for action, want := range map[batch.Action]struct {
		addresses []string
		older     int
	}{
		batch.Replay:  {[]string{"1", "2", "4", "5"}, 1},
		batch.Discard: {[]string{"1", "2", "3", "4", "5"}, 0},
	} {
		p := batch.Plan{Action: action}
		p.Add(letters)
		var got []string
		for _, l := range p.Letters {
			got = append(got, l.Address)
		}
		if diff := cmp.Diff(want.addresses, got); diff != "" || p.Older != want.older {
			t.Errorf("%s: %d left out, want %d; (-want +got)\n%s", action, p.Older, want.older, diff)
		}
	}
}

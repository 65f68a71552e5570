package embedded

import (
	"path/filepath"
	"testing"
	"time"
)

func TestWakerTellsTheOtherAndEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db-lock")
	var wakers []*notifier
	for range 2 {
		side, err := openSideFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer side.close()
		if alone := side.alone(); alone != (len(wakers) == 0) {
			t.Errorf("opening %d is alone: %v", len(wakers), alone)
		}
		w, err := newWaker(side)
		if err != nil {
			t.Fatal(err)
		}
		wakers = append(wakers, w.(*notifier))
	}
	wakers[0].wake()
	select {
	case <-wakers[1].poked():
	case <-time.After(5 * time.Second):
		t.Error("the other was not woken")
	}
	for _, w := range wakers {
		w.close()
		select {
		case <-w.ended:
		default:
			t.Error("its goroutine still runs")
		}
	}
}

package batch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatComesDuringAStepIsInTheNext adds one, and two while its step is under way.
func TestWhatComesDuringAStepIsInTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps [][]int
		b := Batcher[int]{Flush: func(batch []int) {
			steps = append(steps, slices.Clone(batch))
			time.Sleep(time.Minute)
		}}
		b.Add(1)
		synctest.Wait()
		b.Add(2)
		b.Add(3)
		within, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Wait(within); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait during a step: %v; want its context's error", err)
		}
		if err := b.Wait(t.Context()); err != nil {
			t.Errorf("Wait: %v", err)
		}
		if len(steps) != 2 || !slices.Equal(steps[0], []int{1}) || !slices.Equal(steps[1], []int{2, 3}) {
			t.Errorf("steps %v; want [1] and [2 3]", steps)
		}
		if err := b.Wait(within); err != nil {
			t.Errorf("Wait where nothing runs: %v", err)
		}
	})
}

package redisstreams

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// flushes is a batcher of texts whose flushes take a second, and what they had.
type flushes struct {
	batcher[string]
	had []string
}

func newFlushes() *flushes {
	f := new(flushes)
	f.weigh = func(s string) int { return len(s) }
	f.flush = func(_ context.Context, batch []string) {
		f.had = append(f.had, fmt.Sprint(batch))
		<-time.After(time.Second)
	}
	return f
}

// TestBatcherTakesWhatWaits: a call that finds nobody at work goes at once and alone;
// whatever comes meanwhile goes together, right after it.
func TestBatcherTakesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlushes()
		began := time.Now()
		go f.add(t.Context(), []string{"a"})
		synctest.Wait()
		for _, s := range []string{"b", "c", "d"} {
			f.add(t.Context(), []string{s})
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("to add to a batch took %v", waited)
		}
		if err := f.wait(t.Context()); err != nil {
			t.Error(err)
		}
		if want := []string{"[a]", "[b c d]"}; !slices.Equal(f.had, want) {
			t.Errorf("flushes %v; want %v", f.had, want)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("two flushes of a second took %v", took)
		}
	})
}

// TestBatcherTakesWhoComesAtOnce: calls of one moment go together, the one that finds
// nobody at work among them.
func TestBatcherTakesWhoComesAtOnce(t *testing.T) {
	f := newFlushes()
	release := make(chan struct{})
	f.flush = func(_ context.Context, batch []string) {
		f.had = append(f.had, fmt.Sprint(batch))
		<-release
	}
	began := f.begin([]string{"a"}) // and yields
	f.add(t.Context(), []string{"b"})
	if !began {
		t.Fatal("the first does not begin")
	}
	go f.do(f.take())
	f.add(t.Context(), []string{"c"})
	close(release)
	if err := f.wait(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"[a b]", "[c]"}; !slices.Equal(f.had, want) {
		t.Errorf("flushes %v; want %v", f.had, want)
	}
}

// TestBatcherBounds keeps to the number and the bytes of a batch.
func TestBatcherBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		b := batcher[int]{
			weigh: func(n int) int { return n },
			flush: func(_ context.Context, batch []int) { sizes = append(sizes, len(batch)); time.Sleep(time.Second) },
		}
		pieces := make([]int, mostPieces+1)
		for i := range pieces {
			pieces[i] = 1
		}
		b.hand(pieces)
		synctest.Wait()
		b.hand([]int{mostBytes / 2, mostBytes / 2, 1, 10 * mostBytes, 1})
		if err := b.wait(t.Context()); err != nil {
			t.Error(err)
		}
		// The one that is left over of the first, with two of half the bytes; one large one
		// after a small one, because a batch is full when it has the bytes, not before.
		if want := []int{mostPieces, 3, 2, 1}; !slices.Equal(sizes, want) {
			t.Errorf("batches of %v; want %v", sizes, want)
		}
	})
}

// TestBatcherWithdraws takes back what is not under way.
func TestBatcherWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlushes()
		f.hand([]string{"a"})
		synctest.Wait()
		f.add(t.Context(), []string{"b", "c"})
		back := f.withdraw(func(s string) bool { return s != "c" })
		if fmt.Sprint(back) != "[b]" {
			t.Errorf("taken back: %v; want b, because a is under way", back)
		}
		if err := f.wait(t.Context()); err != nil {
			t.Error(err)
		}
		if want := []string{"[a]", "[c]"}; !slices.Equal(f.had, want) {
			t.Errorf("flushes %v; want %v", f.had, want)
		}
	})
}

// TestBatcherLeavesNobodyBehind: whoever comes while the last flush ends is served, and
// no goroutine is left when all is done (or the bubble would not end).
func TestBatcherLeavesNobodyBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := make(map[int]int)
		b := batcher[int]{weigh: func(int) int { return 1 }, flush: func(_ context.Context, batch []int) {
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			for _, n := range batch {
				seen[n]++
			}
		}}
		var wg sync.WaitGroup
		const n = 1000
		for i := range n {
			wg.Go(func() {
				time.Sleep(time.Duration(i%17) * 500 * time.Microsecond)
				b.add(t.Context(), []int{i})
			})
		}
		wg.Wait()
		if err := b.wait(t.Context()); err != nil {
			t.Error(err)
		}
		for i := range n {
			if seen[i] != 1 {
				t.Errorf("piece %d was flushed %d times", i, seen[i])
			}
		}
	})
}

// TestBatcherKeepsToTheDeadline of a call that does its own step, and to nobody's
// cancellation: a step that has begun is not given up.
func TestBatcherKeepsToTheDeadline(t *testing.T) {
	var deadline bool
	var done <-chan struct{}
	b := batcher[int]{weigh: func(int) int { return 1 }, flush: func(ctx context.Context, _ []int) {
		_, deadline = ctx.Deadline()
		done = ctx.Done()
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	b.add(ctx, []int{1})
	if !deadline || done != nil {
		t.Errorf("the flush has a deadline: %v, and ends with the caller: %v; want the deadline alone", deadline, done != nil)
	}
}

// TestCallThatIsLeft answers its caller, and nobody after that.
func TestCallThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(call)
		c.begin(2, new(signals))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		answers := 0
		all := c.wait(ctx, func() {
			if c.open() {
				answers++
				c.answered()
			}
		})
		if all || answers != 1 {
			t.Errorf("all is answered: %v, with %d answers; want one that was taken back, and one unknown", all, answers)
		}
		if c.open() {
			t.Errorf("a caller that has left is answered")
			c.answered()
		}
	})
}

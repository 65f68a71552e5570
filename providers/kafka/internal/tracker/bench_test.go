package tracker

import (
	"fmt"
	"testing"
)

// A record is added, started and settled, out of order, by a hundred slots, and commits
// are answered at once.
func BenchmarkRecord(b *testing.B) {
	for _, c := range []struct {
		name          string
		keys, waiting int
	}{
		{"no keys", 1, 0},
		{"1,000 keys", 1000, 0},
		{"behind 50,000 of one key", 1, 50_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			keys := make([]string, c.keys)
			for i := range keys[1:] {
				keys[i+1] = fmt.Sprint("order/", i)
			}
			b.ReportAllocs()
			t, next := crowd(c.waiting)
			for done := 0; done < b.N; {
				if t.Paused() != NotPaused {
					b.StopTimer()
					t, next = crowd(c.waiting)
					b.StartTimer()
				}
				for ; t.Startable() < 2*slots && t.Add(next, keys[next%int64(len(keys))]) == Kept; next++ {
				}
				if c, ok := t.Commit(0, slots); ok {
					t.Accepted(c.Number)
				}
				done += round(b, t, c.waiting > 0)
			}
		})
	}
}

// crowd returns a tracker in which so many records of one key wait, and the next offset.
func crowd(waiting int) (t *Tracker, next int64) {
	t = New(Config{Chunk: 2 * slots, Window: widestWindow}, 0)
	for ; next < int64(waiting); next++ {
		t.Add(next, "slow")
	}
	return t, next
}

const slots = 100

// round starts as many records as there are slots, and settles them: the odd ones first,
// and if so the lowest never.
func round(b *testing.B, t *Tracker, slow bool) (n int) {
	var runs [slots]Run
	for n < slots {
		run, ok := t.Start(0)
		if !ok {
			break
		}
		if !slow || run.Offset > 0 {
			runs[n] = run
			n++
		}
	}
	for i := range n {
		if _, err := t.Settle(runs[(2*i+1)%(n|1)]); err != nil {
			b.Fatal(err)
		}
	}
	return n
}

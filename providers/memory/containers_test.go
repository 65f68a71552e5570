package memory

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRingKeepsOrderThroughGrowthAndShrinking(t *testing.T) {
	t.Parallel()
	var r ring[int]
	var want []int
	next := 0
	for _, more := range []int{10, 3000, -2900, 50, -160, 20, -20} {
		for range max(more, 0) {
			r.push(next)
			want = append(want, next)
			next++
		}
		for range max(-more, 0) {
			if first, ok := r.first(); !ok || first != want[0] {
				t.Fatalf("first is %d, %v; want %d", first, ok, want[0])
			}
			r.pop()
			want = want[1:]
		}
		if r.count != len(want) {
			t.Fatalf("length %d; want %d", r.count, len(want))
		}
		if first, ok := r.first(); ok != (len(want) > 0) || ok && first != want[0] {
			t.Fatalf("first is %d, %v; want the first of %d", first, ok, len(want))
		}
	}
	if len(r.items) > 1024 {
		t.Errorf("an empty ring keeps room for %d", len(r.items))
	}
}

func TestHeapGivesTheFirstWhateverIsMovedOrRemoved(t *testing.T) {
	t.Parallel()
	type item struct{ rank, slot int }
	h := heap[*item]{
		before: func(a, b *item) bool { return a.rank < b.rank },
		slot:   func(i *item) *int { return &i.slot },
	}
	random := rand.New(rand.NewPCG(1, 2))
	var all []*item
	for range 5000 {
		switch n := random.IntN(4); {
		case n < 2 || len(all) == 0:
			i := &item{rank: random.IntN(1000)}
			all = append(all, i)
			h.push(i)
		case n == 2:
			i := all[random.IntN(len(all))]
			i.rank = random.IntN(1000)
			h.fix(i)
		default:
			n := random.IntN(len(all))
			h.remove(all[n])
			all = slices.Delete(all, n, n+1)
		}
		if h.len() != len(all) {
			t.Fatalf("length %d; want %d", h.len(), len(all))
		}
		first, ok := h.first()
		if !ok {
			continue
		}
		least := slices.MinFunc(all, func(a, b *item) int { return cmp.Compare(a.rank, b.rank) })
		if first.rank != least.rank {
			t.Fatalf("first has rank %d; want %d", first.rank, least.rank)
		}
		for n, i := range h.items {
			if i.slot != n {
				t.Fatalf("item %d says that it is at %d", n, i.slot)
			}
		}
	}
}

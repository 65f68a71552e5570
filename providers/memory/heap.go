package memory

// heap keeps items so that the first by an order is at hand. An item knows its
// slot, so that it can be moved and removed from the middle.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
	slot   func(T) *int
}

// first returns the first item, if there is one.
func (h *heap[T]) first() (item T, ok bool) {
	if len(h.items) == 0 {
		return item, false
	}
	return h.items[0], true
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) push(item T) {
	h.items = append(h.items, item)
	*h.slot(item) = len(h.items) - 1
	h.up(len(h.items) - 1)
}

// remove takes out an item that is in the heap.
func (h *heap[T]) remove(item T) {
	i, last := *h.slot(item), len(h.items)-1
	h.swap(i, last)
	var none T
	h.items[last] = none
	h.items = h.items[:last]
	if i < last {
		h.move(i)
	}
}

// fix moves an item whose place in the order has changed.
func (h *heap[T]) fix(item T) { h.move(*h.slot(item)) }

func (h *heap[T]) move(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(h.items[i], h.items[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

// down reports whether the item has moved.
func (h *heap[T]) down(i int) bool {
	start := i
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if right := child + 1; right < len(h.items) && h.before(h.items[right], h.items[child]) {
			child = right
		}
		if !h.before(h.items[child], h.items[i]) {
			break
		}
		h.swap(i, child)
		i = child
	}
	return i > start
}

func (h *heap[T]) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.slot(h.items[i]), *h.slot(h.items[j]) = i, j
}

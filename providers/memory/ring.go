package memory

// ring is a queue in one slice that is used round and round.
type ring[T any] struct {
	items []T
	head  int
	count int
}

// first returns the item that was pushed first, if there is one.
func (r *ring[T]) first() (item T, ok bool) {
	if r.count == 0 {
		return item, false
	}
	return r.items[r.head], true
}

func (r *ring[T]) push(item T) {
	if r.count == len(r.items) {
		r.resize(max(16, 2*r.count))
	}
	r.items[(r.head+r.count)%len(r.items)] = item
	r.count++
}

// pop removes the first item of a ring that is not empty.
func (r *ring[T]) pop() {
	var none T
	r.items[r.head] = none
	r.head = (r.head + 1) % len(r.items)
	r.count--
	if len(r.items) > 1024 && r.count < len(r.items)/4 {
		r.resize(len(r.items) / 2) // a backlog that is gone gives its memory back
	}
}

func (r *ring[T]) resize(size int) {
	items := make([]T, size)
	n := copy(items, r.items[r.head:min(r.head+r.count, len(r.items))])
	copy(items[n:], r.items[:r.count-n])
	r.items, r.head = items, 0
}

package redisstreams

import "time"

// patrol is how long a watcher waits in one call.
const patrol = 2 * time.Second

// watch waits for something to come into lanes that were read and are empty, in the
// background, and takes nothing. One waits at a time, and rings once; until then the
// lanes need not be read.
func (d *desk) watch(lanes []*lane) {
	if !d.watching.CompareAndSwap(false, true) {
		return
	}
	positions := positionsOf(lanes)
	d.sub.watchers.Go(func() {
		defer d.sub.rings()
		defer d.watching.Store(false)
		for ctx := d.sub.ended; ctx.Err() == nil; {
			came, err := d.wait(ctx, &d.hearing, positions, patrol)
			if came || err != nil { // the next read says what is wrong
				return
			}
		}
	})
}

// rings tells who receives to look.
func (s *subscription) rings() {
	select {
	case s.ring <- struct{}{}:
	default:
	}
}

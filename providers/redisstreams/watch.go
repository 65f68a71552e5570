package redisstreams

import "time"

// watching is how long a watcher waits in one call.
const watching = 2 * time.Second

// isQuiet reports whether a watcher waits for these lanes, so that they need not be
// read. It does not hear what dead workers leave: for that they are read all the same.
func (d *desk) isQuiet() bool { return d.watching.Load() && time.Now().Before(d.lookAt) }

// watch waits for something to come into lanes that were read and are empty, in the
// background, and takes nothing. One waits at a time, and rings once.
func (d *desk) watch(lanes []*lane) {
	if !d.watching.CompareAndSwap(false, true) {
		return
	}
	spots := spotsOf(lanes)
	d.sub.watchers.Go(func() {
		defer d.sub.rings()
		defer d.watching.Store(false)
		for ctx := d.sub.ended; ctx.Err() == nil; {
			came, err := d.wait(ctx, &d.hearing, spots, watching)
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

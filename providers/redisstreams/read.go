package redisstreams

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// receive returns jobs that start now, or waits for some.
func (d *desk) receive(ctx context.Context, lanes []*lane, most int) ([]*delivery, error) {
	fewSlots := most < len(lanes)
	if len(lanes) > 1 || d.incomplete.Load() || d.takesOver() {
		list, err := d.read(ctx, lanes, most, wishes{takeOver: d.takesOver(), take: true, places: fewSlots})
		if len(list) > 0 || err != nil {
			return list, err
		}
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	wait := max(time.Millisecond, time.Until(d.takeOverAt))
	if fewSlots {
		// To read some of the lanes only would leave the others waiting.
		_, err := d.wait(ctx, &d.reading, positionsOf(lanes), wait)
		return nil, err
	}
	return d.block(ctx, lanes, most/len(lanes), wait)
}

// wishes say what a read is for.
type wishes struct {
	takeOver bool // what others have left
	take     bool // what waits
	places   bool // from which to wait
}

// takesOver reports whether it is time to take over what others have left.
func (d *desk) takesOver() bool { return !time.Now().Before(d.takeOverAt) }

// read takes what is there, in one step.
func (d *desk) read(ctx context.Context, lanes []*lane, most int, w wishes) ([]*delivery, error) {
	now := time.Now()
	list, err := d.strays(ctx, now, most)
	if len(list) > 0 || err != nil {
		return list, err
	}
	d.calls++
	s := d.sub.store
	var r request
	r.say(group, d.sub.consumer, strconv.Itoa(most), flag(w.takeOver), strconv.FormatInt(recent.Milliseconds(), 10),
		strconv.FormatInt(s.silent.Milliseconds(), 10), flag(w.take), flag(w.places), d.sub.token+strconv.Itoa(d.calls))
	for _, l := range lanes {
		r.keys = append(r.keys, l.keys.stream, l.group.groups, l.group.released, l.group.looked)
		r.say(l.queue)
	}
	var reply []any
	s.link.point("read begins")
	err = d.reading.use(ctx, false, func(ctx context.Context, conn *redis.Conn) error {
		var err error
		reply, err = s.scripts.read.on(ctx, conn, r.keys, r.args)
		return err
	})
	if err != nil {
		d.suspect(err)
		return nil, err
	}
	s.link.point("read is done")
	if len(reply) != 7 {
		return nil, fmt.Errorf("redis: script read: the answer has %d parts, not 7", len(reply))
	}
	d.incomplete.Store(false)
	if len(listOf(reply[4])) > 0 {
		d.sub.listAgain(ctx)
	}
	if w.takeOver && numberOf(reply[5]) == 0 {
		d.takeOverAt = now.Add(takeOverEvery)
	}
	if w.places {
		for i, l := range lanes {
			l.last = textOf(nth(listOf(reply[6]), i))
		}
	}
	return d.unpack(ctx, now, lanes, reply), nil
}

// suspect notes that entries may have been handed out in an answer that was lost.
func (d *desk) suspect(err error) {
	if broken(err) {
		d.suspects = time.Now().Add(suspicion)
	}
}

// block waits until there is something, and takes it: up to so many from each lane.
func (d *desk) block(ctx context.Context, lanes []*lane, each int, wait time.Duration) ([]*delivery, error) {
	u := unpacking{asked: time.Now()}
	args := make([]any, 0, 10+2*len(lanes))
	args = append(args, "XREADGROUP", "GROUP", group, d.sub.consumer, "COUNT", each, "BLOCK", wait.Milliseconds()+1, "STREAMS")
	for _, l := range lanes {
		args = append(args, l.keys.stream)
	}
	for range lanes {
		args = append(args, ">")
	}
	came, err := d.blocked(ctx, &d.reading, args)
	if err == nil && came != nil {
		for range came.list() {
			u.addStream(lanes, came)
		}
		if came.bad {
			err = errMalformed
		}
	}
	if err != nil {
		d.suspect(err)
	}
	return d.finish(ctx, &u), err
}

// position is a place in a stream from which to wait.
type position struct{ stream, last string }

func positionsOf(lanes []*lane) []position {
	positions := make([]position, len(lanes))
	for i, l := range lanes {
		positions[i] = position{l.keys.stream, l.last}
	}
	return positions
}

// wait waits until there is something, and takes nothing.
func (d *desk) wait(ctx context.Context, on *wire, positions []position, wait time.Duration) (bool, error) {
	args := make([]any, 0, 6+2*len(positions))
	args = append(args, "XREAD", "COUNT", 1, "BLOCK", wait.Milliseconds()+1, "STREAMS")
	for _, at := range positions {
		args = append(args, at.stream)
	}
	for _, at := range positions {
		args = append(args, at.last)
	}
	came, err := d.blocked(ctx, on, args)
	return came != nil && came.list() > 0 || d.incomplete.Load(), err
}

// blocked sends a command that blocks. It returns nil if there is nothing when its time
// is over. A group or a stream that vanishes ends it too: the next read makes them anew.
func (d *desk) blocked(ctx context.Context, on *wire, args []any) (*rawReply, error) {
	var came *rawReply
	err := on.use(ctx, true, func(ctx context.Context, conn *redis.Conn) error {
		var err error
		came, err = on.fetch(ctx, conn, args)
		return err
	})
	if redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED") {
		d.incomplete.Store(true)
		return nil, nil
	}
	return came, err
}

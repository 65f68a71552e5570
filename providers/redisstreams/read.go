package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// receive returns jobs that start now, or waits for some.
func (d *desk) receive(ctx context.Context, lanes []*lane, most int) ([]*delivery, error) {
	fewSlots := most < len(lanes)
	if len(lanes) > 1 || d.incomplete.Load() || d.looks() {
		list, err := d.read(ctx, lanes, most, wishes{look: d.looks(), take: true, places: fewSlots})
		if len(list) > 0 || err != nil {
			return list, err
		}
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	wait := max(time.Millisecond, time.Until(d.lookAt))
	if fewSlots {
		// To read some of the lanes only would leave the others waiting.
		_, err := d.wait(ctx, &d.reading, spotsOf(lanes), wait)
		return nil, err
	}
	return d.block(ctx, lanes, most/len(lanes), wait)
}

// wishes say what a read is for.
type wishes struct {
	look   bool // for what others have left
	take   bool // what waits
	places bool // from which to wait
}

// looks reports whether it is time to look for what others have left.
func (d *desk) looks() bool { return !time.Now().Before(d.lookAt) }

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
	r.say(group, d.sub.consumer, strconv.Itoa(most), flag(w.look), strconv.FormatInt(recent.Milliseconds(), 10),
		strconv.FormatInt(s.silent.Milliseconds(), 10), flag(w.take), flag(w.places), d.sub.token+strconv.Itoa(d.calls))
	for _, l := range lanes {
		r.keys = append(r.keys, l.home.stream, l.post.groups, l.post.released, l.post.looked)
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
		return nil, fmt.Errorf("redis: reading answers %d things", len(reply))
	}
	d.incomplete.Store(false)
	if len(listOf(reply[4])) > 0 {
		d.sub.listAgain(ctx)
	}
	if w.look && numberOf(reply[5]) == 0 {
		d.lookAt = now.Add(aroundEvery)
	}
	if w.places {
		for i, l := range lanes {
			l.last = textOf(nth(listOf(reply[6]), i))
		}
	}
	return d.unpack(ctx, now, lanes, reply), nil
}

func flag(is bool) string {
	if is {
		return "1"
	}
	return "0"
}

// unpack makes deliveries of what the script returned.
func (d *desk) unpack(ctx context.Context, asked time.Time, lanes []*lane, reply []any) []*delivery {
	for i, l := range lanes {
		l.generation = textOf(nth(listOf(reply[0]), i))
		if ghosts := numberOf(nth(listOf(reply[3]), i)); ghosts > 0 {
			d.tell(provider.Ghost, l, ghosts, "entries that a dead worker had are not in the stream any more, and were acknowledged")
		}
	}
	for _, n := range listOf(reply[4]) {
		d.tell(provider.GroupRecreated, lanes[numberOf(n)-1], 1, "the consumer group had vanished and was made anew: what is not settled is delivered from the beginning")
	}
	u := unpacking{asked: asked}
	for _, v := range listOf(reply[1]) {
		left := listOf(v)
		l := lanes[numberOf(left[0])-1]
		u.add(l, textOf(left[1]), numberOf(left[2]), numberOf(left[3]), listOf(left[4]))
	}
	for _, v := range listOf(reply[2]) {
		waited := listOf(v)
		u.addNew(lanes[numberOf(waited[0])-1], listOf(waited[1]))
	}
	return d.finish(ctx, &u)
}

func (d *desk) tell(kind provider.Kind, l *lane, n int64, message string) {
	d.sub.store.news.emit(provider.Event{Kind: kind, Queue: l.queue, Count: n, Message: message})
}

// unpacking is what came in one answer.
type unpacking struct {
	asked time.Time // when the leases began, at the earliest
	list  []*delivery
	odd   []oddEntry
}

// oddEntry is an entry that has no job.
type oddEntry struct {
	delivery *delivery
	bytes    string
}

// addNew adds entries that were delivered for the first time.
func (u *unpacking) addNew(l *lane, entries []any) {
	for _, v := range entries {
		entry := listOf(v)
		u.add(l, textOf(nth(entry, 0)), 1, 0, listOf(nth(entry, 1)))
	}
}

// add adds an entry that was delivered so many times, and given back so many times.
// All others of these deliveries are crashes.
func (u *unpacking) add(l *lane, id string, deliveries, released int64, fields []any) {
	d := &delivery{lane: l, id: id, deliveries: deliveries, generation: l.generation, confirmed: u.asked}
	body, ok := recordOf(fields)
	job, err := provider.Unmarshal([]byte(body))
	if !ok || err != nil {
		u.odd = append(u.odd, oddEntry{d, body})
		return
	}
	job.Counters.Crashes += int32(max(0, deliveries-1-released))
	d.job = job
	u.list = append(u.list, d)
}

// recordOf finds the record of an entry. Of an entry that is not ours it returns all
// that is in it, to read.
func recordOf(fields []any) (string, bool) {
	for i := 0; i+1 < len(fields); i += 2 {
		if textOf(fields[i]) == field {
			return textOf(fields[i+1]), true
		}
	}
	var all strings.Builder
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&all, "%q: %q\n", textOf(fields[i]), textOf(fields[i+1]))
	}
	return all.String(), false
}

// finish notes the runs, and dead-letters what is no job.
func (d *desk) finish(ctx context.Context, u *unpacking) []*delivery {
	for _, run := range u.list {
		run.lane.knows(run)
	}
	for _, odd := range u.odd {
		odd.delivery.lane.knows(odd.delivery)
	}
	for _, odd := range u.odd {
		if !d.bury(ctx, odd) {
			break // nor would the others be: jobs that start now must not wait for each of them
		}
	}
	return u.list
}

// burying is how long Receive waits for bytes that are no record to be put away. If
// that fails, their lease ends and the next worker tries.
const burying = time.Second

func (d *desk) bury(ctx context.Context, odd oddEntry) bool {
	apart, cancel := context.WithTimeout(context.WithoutCancel(ctx), burying)
	defer cancel()
	err := odd.delivery.settle(apart, &settlement{kind: endDead, body: []byte(odd.bytes)})
	if err == nil {
		d.sub.store.foreign(odd.delivery.lane.queue)
	}
	return err == nil
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
		args = append(args, l.home.stream)
	}
	for range lanes {
		args = append(args, ">")
	}
	reply, err := d.blocked(ctx, &d.reading, args)
	if err != nil {
		d.suspect(err)
		return nil, err
	}
	for _, v := range reply {
		stream := listOf(v)
		for _, l := range lanes {
			if l.home.stream == textOf(nth(stream, 0)) {
				u.addNew(l, listOf(nth(stream, 1)))
			}
		}
	}
	return d.finish(ctx, &u), nil
}

// spot is a place in a stream from which to wait.
type spot struct{ stream, last string }

func spotsOf(lanes []*lane) []spot {
	spots := make([]spot, len(lanes))
	for i, l := range lanes {
		spots[i] = spot{l.home.stream, l.last}
	}
	return spots
}

// wait waits until there is something, and takes nothing.
func (d *desk) wait(ctx context.Context, on *wire, spots []spot, wait time.Duration) (bool, error) {
	args := make([]any, 0, 6+2*len(spots))
	args = append(args, "XREAD", "COUNT", 1, "BLOCK", wait.Milliseconds()+1, "STREAMS")
	for _, at := range spots {
		args = append(args, at.stream)
	}
	for _, at := range spots {
		args = append(args, at.last)
	}
	reply, err := d.blocked(ctx, on, args)
	return len(reply) > 0 || d.incomplete.Load(), err
}

// blocked sends a command that blocks, and returns nothing when its time is over. A
// group or a stream that vanishes ends it too: the next read makes them anew.
func (d *desk) blocked(ctx context.Context, on *wire, args []any) ([]any, error) {
	var reply any
	err := on.use(ctx, true, func(ctx context.Context, conn *redis.Conn) error {
		var err error
		reply, err = conn.Do(ctx, args...).Result()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return err
	})
	if redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED") {
		d.incomplete.Store(true)
		return nil, nil
	}
	return listOf(reply), err
}
